"""Our own worlds as OpenSpiel games. Importing the module registers them.

They are `python_pohp_catch`, `python_pohp_cart_pole` and `python_pohp_biased_rock_paper_scissors`, with the
rules of `catch`, `cart_pole` and `matrix_game`; `openspiel.load_game` imports the module when it is asked for
one of them. The daimon's draws are chance nodes: one for each ball, four of `bins` values each for a cart's
start. Catch and cart pole end after `horizon` decisions, cart pole also at a fall.

A reward stands in `rewards()` of the next decision or terminal state, not at the chance node between, so
that it is counted once both by those who sum over all states and by those who skip chance nodes, as
OpenSpiel's tools do.
"""

from typing import Any

import numpy as np
import pyspiel
from pohp_neurd.games import cart_pole, catch, matrix_game

from pohp_neurd import checks


def _game_type(short_name: str, long_name: str, parameters: dict[str, int]) -> pyspiel.GameType:
    return pyspiel.GameType(
        short_name=short_name,
        long_name=long_name,
        dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
        chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
        information=pyspiel.GameType.Information.PERFECT_INFORMATION,
        utility=pyspiel.GameType.Utility.GENERAL_SUM,
        reward_model=pyspiel.GameType.RewardModel.REWARDS,
        max_num_players=1,
        min_num_players=1,
        provides_information_state_string=True,
        provides_information_state_tensor=True,
        provides_observation_string=True,
        provides_observation_tensor=True,
        parameter_specification=parameters,
    )


_CATCH_DEFAULTS = {"rows": 10, "columns": 5, "horizon": 9}
_CATCH = _game_type("python_pohp_catch", "Catch with rewards 0 and -1", _CATCH_DEFAULTS)
_CART_POLE_DEFAULTS = {"bins": 5, "horizon": 200}
_CART_POLE = _game_type("python_pohp_cart_pole", "Cart pole with rewards 0 and -1", _CART_POLE_DEFAULTS)
_CHANCE, _TERMINAL = int(pyspiel.PlayerId.CHANCE), int(pyspiel.PlayerId.TERMINAL)


class _SoloGame(pyspiel.Game):
    """What both games share: one agent, equally likely draws, the sizes and bounds of a Process."""

    def __init__(self, kind: pyspiel.GameType, params: Any, world: Any, draw_values: int, most_draws: int):
        self.world, self.spec = world, world.spec
        self.draw_values, self.most_draws = draw_values, most_draws
        info = pyspiel.GameInfo(
            num_distinct_actions=self.spec.num_actions,
            max_chance_outcomes=draw_values,
            num_players=1,
            min_utility=-self.spec.return_bound,
            max_utility=0.0,
            max_game_length=self.spec.horizon,
        )
        super().__init__(kind, info, params or {})

    def max_chance_nodes_in_history(self) -> int:
        """The most draws before the last decision."""
        return self.most_draws

    def make_py_observer(
        self, iig_obs_type: pyspiel.IIGObservationType | None = None, params: dict[str, Any] | None = None
    ) -> "_Observer":
        """The present; with perfect recall also every draw and move that led to it.

        All of it is public: an observer without public information sees nothing.
        """
        if params:
            raise ValueError(f"these games have one observation, without parameters, but got {params}.")
        if iig_obs_type is None:
            return _Observer(self)
        return _Observer(self, iig_obs_type.perfect_recall, iig_obs_type.public_info)


class _SoloState(pyspiel.State):
    """What the states of both games share: draws and moves so far, and a reward that waits for its state.

    A game's own has `_draw(outcome)`, whether another draw follows; `_move(action)`, whether it costs 1,
    whether a draw follows, whether the game ends; and `observation()`, zeros before all is drawn.
    """

    def __init__(self, game: _SoloGame):
        super().__init__(game)
        # A clone is a deep copy, which must not copy the game: only its numbers are kept.
        self._horizon, self._draw_values = game.spec.horizon, game.draw_values
        self.draws: list[int] = []
        self.moves: list[int] = []
        self._next = _CHANCE
        self._reward = self._return = 0.0

    def current_player(self) -> int:
        """Chance, the agent, or nobody."""
        return self._next

    def is_terminal(self) -> bool:
        """Whether the horizon is reached, or the game was over before it."""
        return self._next == _TERMINAL

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """All values of a draw, equally likely."""
        count = self._draw_values
        return [(outcome, 1.0 / count) for outcome in range(count)]

    def _legal_actions(self, player: int) -> list[int]:
        return list(range(self.num_distinct_actions()))

    def _apply_action(self, action: int) -> None:
        if self._next == _CHANCE:
            self.draws.append(action)
            self._next = _CHANCE if self._draw(action) else 0
            return
        self._return += self._reward
        self.moves.append(action)
        missed, draw_follows, ended = self._move(action)
        self._reward = -1.0 if missed else 0.0
        self._next = _CHANCE if draw_follows else 0
        if ended or len(self.moves) >= self._horizon:
            self._next = _TERMINAL

    def rewards(self) -> list[float]:
        """What the last decision cost, once chance has replied to it."""
        return [0.0 if self._next == _CHANCE else self._reward]

    def returns(self) -> list[float]:
        """The sum of all rewards so far."""
        return [self._return + self.rewards()[0]]


class _Observer:
    """OpenSpiel's view of a state: the present, and with perfect recall the draws and moves before it."""

    def __init__(self, game: _SoloGame, perfect_recall: bool = False, public_info: bool = True):
        shapes: dict[str, tuple[int, ...]] = {}
        if public_info:
            shapes["observation"] = (game.spec.observation_size,)
        if public_info and perfect_recall:
            shapes["draws"] = (game.most_draws, game.draw_values)
            shapes["moves"] = (game.spec.horizon, game.spec.num_actions)
        self._perfect_recall = perfect_recall
        sizes = [int(np.prod(shape)) for shape in shapes.values()]
        self.tensor = np.zeros(sum(sizes), np.float32)
        parts = np.split(self.tensor, np.cumsum(sizes))[: len(sizes)]
        self.dict = {name: part.reshape(shapes[name]) for name, part in zip(shapes, parts, strict=True)}

    def set_from(self, state: _SoloState, player: int) -> None:
        """Fills `tensor` and its named parts from `state`."""
        self.tensor.fill(0)
        for name, part in self.dict.items():
            if name == "observation":
                part[:] = state.observation()
            else:
                values = state.draws if name == "draws" else state.moves
                part[np.arange(len(values)), values] = 1

    def string_from(self, state: _SoloState, player: int) -> str:
        """The state for people; with perfect recall, what tells it from every other."""
        if not self.dict:
            return ""
        if not self._perfect_recall:
            return str(state)
        return f"draws {''.join(map(str, state.draws))} moves {''.join(map(str, state.moves))}"


class CatchGame(_SoloGame):
    """Catch with a chance node for every ball."""

    def __init__(self, params: dict[str, Any] | None = None):
        given = {**_CATCH_DEFAULTS, **(params or {})}
        # The Process checks the sizes: its one sentence is ours.
        world = catch.Catch(given["rows"], given["columns"], given["horizon"])
        most_draws = -(-given["horizon"] // (world.rows - 1))
        super().__init__(_CATCH, params, world, world.columns, most_draws)

    def new_initial_state(self) -> "CatchState":
        """The moment before the first ball."""
        return CatchState(self)


class CatchState(_SoloState):
    """A board, or the moment before a ball."""

    def __init__(self, game: CatchGame):
        super().__init__(game)
        self._rows, self._columns = game.world.rows, game.world.columns
        self._board: catch.Board | None = None

    def _draw(self, outcome: int) -> bool:
        self._board = catch.drop(outcome, self._columns, xp=np)
        return False

    def _move(self, action: int) -> tuple[bool, bool, bool]:
        self._board = catch.advance(self._board, action, self._columns, xp=np)
        landed = bool(catch.has_landed(self._board, self._rows))
        return bool(catch.is_missed(self._board, self._rows)), landed, False

    def observation(self) -> np.ndarray:
        """The board row by row: 1 at the ball and at the paddle."""
        cells = np.zeros((self._rows, self._columns), np.float32)
        if self._board is not None:
            cells[self._board.ball_row, self._board.ball_column] = 1
            cells[self._rows - 1, self._board.paddle] = 1
        return cells.ravel()

    def _action_to_string(self, player: int, action: int) -> str:
        return f"column {action}" if player == _CHANCE else ("left", "stay", "right")[action]

    def __str__(self) -> str:
        if self._board is None:
            return "before the first ball"
        return catch.render(self._board, self._rows, self._columns)


class CartPoleGame(_SoloGame):
    """Cart pole whose start is drawn by four chance nodes, the middles of `bins` equal intervals."""

    def __init__(self, params: dict[str, Any] | None = None):
        given = {**_CART_POLE_DEFAULTS, **(params or {})}
        world = cart_pole.CartPole(given["horizon"])
        checks.at_least("bins", given["bins"])
        middles = (np.arange(given["bins"]) + 0.5) / given["bins"]
        self.starts = cart_pole.START_LIMIT * (2 * middles - 1)
        super().__init__(_CART_POLE, params, world, given["bins"], 4)

    def new_initial_state(self) -> "CartPoleState":
        """The moment before the cart is put on its track."""
        return CartPoleState(self)


class CartPoleState(_SoloState):
    """A cart, or a start of which fewer than four numbers are drawn."""

    def __init__(self, game: CartPoleGame):
        super().__init__(game)
        self._starts = game.starts
        self._cart: cart_pole.Cart | None = None

    def _draw(self, outcome: int) -> bool:
        if len(self.draws) == 4:
            self._cart = cart_pole.Cart(*self._starts[self.draws])
        return len(self.draws) < 4

    def _move(self, action: int) -> tuple[bool, bool, bool]:
        self._cart = cart_pole.advance(self._cart, action, xp=np)
        fell = bool(cart_pole.has_fallen(self._cart))
        return fell, False, fell

    def observation(self) -> np.ndarray:
        """Position, velocity, angle and angular velocity."""
        return np.zeros(4, np.float32) if self._cart is None else np.array(self._cart, np.float32)

    def _action_to_string(self, player: int, action: int) -> str:
        return f"bin {action}" if player == _CHANCE else ("left", "right")[action]

    def __str__(self) -> str:
        return f"start {self.draws}" if self._cart is None else cart_pole.render(self._cart)


class BiasedRockPaperScissors:
    """Rock-paper-scissors in which rock beats scissors for 2: the equilibrium is 1/4, 1/2, 1/4.

    A class only because OpenSpiel drops what it has registered after Python's end, which a function, unlike a
    class, does not survive; an instance is OpenSpiel's own game of a matrix.
    """

    def __new__(cls, params: dict[str, Any] | None = None) -> pyspiel.MatrixGame:
        """The game; it has no parameters, but OpenSpiel hands them to all."""
        moves = ["rock", "paper", "scissors"]
        payoffs = matrix_game.BIASED_ROCK_PAPER_SCISSORS
        names = "python_pohp_biased_rock_paper_scissors", "Rock-paper-scissors, rock's win counts 2"
        return pyspiel.create_matrix_game(*names, moves, moves, payoffs, -payoffs)


pyspiel.register_game(_CATCH, CatchGame)
pyspiel.register_game(_CART_POLE, CartPoleGame)
pyspiel.register_game(BiasedRockPaperScissors().get_type(), BiasedRockPaperScissors)
