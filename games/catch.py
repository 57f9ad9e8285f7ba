"""Catch: a ball falls, a paddle must be under it. bsuite's rules (Osband et al. 2020), rewards of the paper.

First the rules as pure functions on a `Board`, then the Process. The ball starts in a uniformly drawn column
of the top row, the paddle in the middle of the bottom row. At each step the paddle moves (and stops at the
walls), then the ball falls one row. A ball that lands beside the paddle costs 1; the next is dropped at once.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import checks, process, types

LEFT, STAY, RIGHT = 0, 1, 2


class Board(NamedTuple):
    """Where the ball and the paddle are: integers, or integer arrays of any one shape."""

    ball_row: Any
    ball_column: Any
    paddle: Any


# The rules take the array library as `xp`: the same lines serve jit (jax.numpy) and OpenSpiel (numpy).


def drop(column: Any, columns: int, *, xp: Any = jnp) -> Board:
    """The board as a ball is dropped in `column`: the paddle is back in the middle."""
    return Board(xp.zeros_like(column), column, xp.full_like(column, columns // 2))


def advance(board: Board, action: Any, columns: int, *, xp: Any = jnp) -> Board:
    """The board a step later: the paddle moves by −1, 0 or +1 for actions 0, 1 and 2, the ball falls."""
    paddle = xp.clip(board.paddle + action - STAY, 0, columns - 1)
    return Board(board.ball_row + 1, board.ball_column, paddle)


def has_landed(board: Board, rows: int) -> Any:
    """Whether the ball has come to the paddle's row."""
    return board.ball_row == rows - 1


def is_missed(board: Board, rows: int) -> Any:
    """Whether the ball has landed beside the paddle."""
    return has_landed(board, rows) & (board.ball_column != board.paddle)


def render(board: Board, rows: int, columns: int) -> str:
    """The board as text, `o` the ball and `=` the paddle.

    >>> print(render(Board(0, 3, 2), 3, 4))
    |   o|
    |    |
    |  = |
    """
    cells = [[" "] * columns for _ in range(rows)]
    cells[rows - 1][int(board.paddle)] = "="
    cells[int(board.ball_row)][int(board.ball_column)] = "o"
    return "\n".join(f"|{''.join(row)}|" for row in cells)


class Fall(NamedTuple):
    """A history, as far as the future depends on it."""

    board: Board
    missed: Bool[Array, ""]
    """Whether the step that led here let a ball fall."""
    time: Int[Array, ""]
    """Decisions so far; stays 0 where nothing depends on it."""


@dataclasses.dataclass(frozen=True)
class Catch:
    """The process: continuing, as in the paper, or over after `horizon` decisions.

    With a horizon of rows − 1 an episode is one ball, as in bsuite. With `swap_every`, left and right change
    their meanings after so many decisions, and again after as many more; no observation tells of it.
    """

    rows: int = 10
    columns: int = 5
    horizon: int | None = None
    swap_every: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("rows", 2), ("columns", 1)):
            checks.at_least(name, getattr(self, name), least)
        for name in ("horizon", "swap_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, or None, but is {value}.")

    @property
    def spec(self) -> process.Spec:
        """One agent, three actions, a pixel for every cell; at most one miss in every fall."""
        bound = None if self.horizon is None else float(self.horizon // (self.rows - 1))
        size = self.rows * self.columns
        return process.Spec(1, 3, size, reward_bound=1.0, horizon=self.horizon, return_bound=bound)

    def initial(self, *, key: types.Key) -> Fall:
        """A ball in a uniformly drawn column."""
        return Fall(drop(self._column(key), self.columns), jnp.asarray(False), jnp.zeros((), jnp.int32))

    def active_agent(self, history: Fall) -> Int[Array, ""]:
        """The one agent."""
        return jnp.zeros((), jnp.int32)

    def observation(self, history: Fall) -> Float[Array, "D"]:
        """The board row by row: 1 at the ball and at the paddle, 0 elsewhere."""
        cells = jnp.arange(self.rows * self.columns, dtype=jnp.int32)
        ball, paddle = self.active_features(history)
        return ((cells == ball) | (cells == paddle)).astype(float)

    def active_features(self, history: Fall) -> Int[Array, "2"]:
        """The two entries of the observation that are 1; all others are 0."""
        board = history.board
        ball = board.ball_row * self.columns + board.ball_column
        return jnp.stack([ball, (self.rows - 1) * self.columns + board.paddle])

    def legal_actions(self, history: Fall) -> Bool[Array, "3"]:
        """All three, everywhere."""
        return jnp.ones(3, bool)

    def apply(self, history: Fall, action: types.Action, *, key: types.Key) -> Fall:
        """The board a step later; where the ball has landed, the next one is already dropped."""
        action = jnp.asarray(action, jnp.int32)
        if self.swap_every is not None:
            action = jnp.where(history.time // self.swap_every % 2 == 1, RIGHT - action, action)
        board = advance(history.board, action, self.columns)
        missed = is_missed(board, self.rows)
        fresh = drop(self._column(key), self.columns)
        landed = has_landed(board, self.rows)
        board = jax.tree.map(lambda new, old: jnp.where(landed, new, old), fresh, board)
        if self.horizon is None:
            return Fall(board, missed, history.time if self.swap_every is None else history.time + 1)
        following = Fall(board, missed, history.time + 1)
        ended = self.continuation(history) == 0
        return jax.tree.map(lambda old, new: jnp.where(ended, old, new), history, following)

    def reward(self, history: Fall) -> Float[Array, "1"]:
        """−1 for a miss."""
        return -history.missed.astype(float)[None]

    def continuation(self, history: Fall) -> Float[Array, ""]:
        """1; with a horizon, 0 once it is reached."""
        if self.horizon is None:
            return jnp.ones(())
        return (history.time < self.horizon).astype(float)

    def render(self, history: Fall) -> str:
        """The board as text; see `render`."""
        return render(history.board, self.rows, self.columns)

    def _column(self, key: types.Key) -> Int[Array, ""]:
        # One draw of 32 bits; randint takes two, and this is in the inner loop. Exact to 2⁻³².
        scaled = jax.random.uniform(key, dtype=jnp.float32) * self.columns
        return jnp.minimum(scaled.astype(jnp.int32), self.columns - 1)
