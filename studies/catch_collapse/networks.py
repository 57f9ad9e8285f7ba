"""What became of the agents of a run in catch: their policy, torso and critic on every board there is.

    python studies/catch_collapse/networks.py --run=runs/catch

Reads the newest checkpoint of a run of train_single_agent.py and prints a row for every seed as CSV, with the
columns that `study` explains. The values that a critic is compared with are exact.
"""

import csv
import itertools
import pathlib
import sys
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags, logging
from pohp_neurd.games import catch

from pohp_neurd import checkpoint, neural, policy
from pohp_neurd.experiment import single_agent
from pohp_neurd.online import agent as online
from pohp_neurd.online import lifetimes
from pohp_neurd.results import records

COLUMNS = (
    "learning_rate",
    "exploration",
    "seed",
    "misses",
    "columns_missed",
    "entropy",
    "logit_spread",
    "silent_units_1",
    "silent_units_2",
    "value_mean",
    "value_spread",
    "target_mean",
    "value_correlation",
)


def study(path: records.Path) -> list[dict[str, Any]]:
    """A row of COLUMNS for every run in the folder `path`.

    `misses` is the exact probability of missing a ball under the policy as it is; `columns_missed` counts the
    columns in which a ball is missed more often than not; `silent_units` are the shares of ReLUs that are 0
    on every board; `logit_spread` and `value_spread` are standard deviations, over actions and over boards;
    `target_mean` is the mean of what the critic should say of the policy as it is, and `value_correlation`
    how what it does say goes with that, over the boards that the policy meets.
    """
    folder = records.RunFolder(pathlib.Path(path))
    if not folder.config.is_file():
        raise ValueError(f"there is no run in {path}.")
    content = records.read_object(folder.config)
    try:
        # JSON has no tuples.
        lists = {name: tuple(content[name]) for name in ("explorations", "learning_rates")}
        config = single_agent.Config(**{**content, **lists})
    except (KeyError, TypeError):
        raise ValueError(f"{folder.config} is not that of a run of train_single_agent.py.") from None
    if config.environment != "catch":
        raise ValueError(f"this study is of catch, but {path} is a run in {config.environment}.")
    torso = (config.width, config.width)
    like = jax.eval_shape(
        lambda runs: lifetimes.begin_all(config.world(), config.options(), runs, torso=torso), config.runs()
    )
    restored = checkpoint.restore(folder.checkpoints, like, run=folder.digest)
    if restored is None:
        raise ValueError(f"there is no checkpoint in {path}.")
    rows = []
    for index, (rate, exploration, seed) in enumerate(config.settings()):
        life = jax.tree.map(lambda leaf, i=index: jnp.asarray(leaf[i]), restored.tree)
        agent = lifetimes.paper_agent(
            config.world(), config.options(), learning_rate=rate, exploration=exploration, torso=torso
        )
        found = inspect(agent.parameters(life.agent), torso, config.options())
        rows.append({"learning_rate": rate, "exploration": exploration, "seed": seed, **found})
    return rows


def inspect(parameters: Any, torso: tuple[int, ...], options: online.Options) -> dict[str, Any]:
    """The figures of one network, on all boards of 10 x 5 catch; `options` say what its critic aims at."""
    world = catch.Catch()
    places = _places(world)
    boards = np.zeros((len(places), world.rows * world.columns), np.float32)
    for row, (ball_row, ball_column, paddle) in enumerate(places):
        boards[row, ball_row * world.columns + ball_column] = 1
        boards[row, (world.rows - 1) * world.columns + paddle] = 1
    model = neural.network(boards.shape[1], 3, torso=torso, critic=True)
    output = jax.vmap(model.apply, in_axes=(None, 0))(parameters, boards)
    legal = np.ones(3, bool)
    chances = np.asarray(jax.vmap(lambda f: policy.probabilities(f, legal))(output.logits), np.float64)
    table = dict(zip(places, chances, strict=True))
    caught = [_catch_probability(table, column, world) for column in range(world.columns)]
    weights = jax.tree.map(np.asarray, parameters)
    first = np.maximum(boards @ weights["torso_0"]["w"] + weights["torso_0"]["b"], 0)
    seen = np.concatenate([first, boards], axis=1)
    second = np.maximum(seen @ weights["torso_1"]["w"] + weights["torso_1"]["b"], 0)
    values = np.asarray(output.value, np.float64)
    chain = _chain(chances, world)
    targets = critic_targets(chain, options)
    entropies = jax.vmap(lambda f: policy.entropy(f, legal))(output.logits)
    return {
        "misses": round(1 - float(np.mean(caught)), 5),
        "columns_missed": int(np.sum(np.array(caught) < 0.5)),
        "entropy": round(float(np.mean(entropies)), 4),
        "logit_spread": round(float(np.mean(np.std(output.logits, axis=1))), 3),
        "silent_units_1": round(float(np.mean(np.all(first == 0, axis=0))), 4),
        "silent_units_2": round(float(np.mean(np.all(second == 0, axis=0))), 4),
        "value_mean": round(float(values.mean()), 4),
        "value_spread": round(float(values.std()), 4),
        "target_mean": round(float(targets.mean()), 4),
        "value_correlation": round(_correlation(values, targets, chain.visits), 4),
    }


class Chain(NamedTuple):
    """Catch under one policy, as a Markov chain over the boards."""

    transitions: np.ndarray
    """[boards, boards]; from a landing to the next ball."""
    rewards: np.ndarray
    """Expected, of the decision at each board."""
    visits: np.ndarray
    """The share of time at each board, in the long run."""


def critic_targets(chain: Chain, options: online.Options) -> np.ndarray:
    """V on every board such that the truncated λ-return's expectation is V: where the critic would settle.

    G_0 = b V and G_n = r + P((1 − λ) b V + λ G_{n−1}), so G_W is affine in V, and V = G_W is solved exactly.
    """
    size = len(chain.rewards)
    slope, offset = options.bootstrap * np.eye(size), np.zeros(size)
    for step in range(options.window):
        # Backwards from the cut: the first round holds the last value of the window.
        factor = options.bootstrap if step == 0 or options.bootstrapped == "every" else 1.0
        slope = chain.transitions @ ((1 - options.lambda_) * factor * np.eye(size) + options.lambda_ * slope)
        offset = chain.rewards + options.lambda_ * chain.transitions @ offset
    return np.linalg.solve(np.eye(size) - slope, offset)


def _places(world: catch.Catch) -> list[tuple[int, int, int]]:
    """Row and column of the ball, and the paddle, of every board with a decision."""
    return list(itertools.product(range(world.rows - 1), range(world.columns), range(world.columns)))


def _chain(chances: np.ndarray, world: catch.Catch) -> Chain:
    places = _places(world)
    index = {place: row for row, place in enumerate(places)}
    drops = np.zeros(len(places))
    drops[[index[0, column, world.columns // 2] for column in range(world.columns)]] = 1 / world.columns
    transitions, rewards = np.zeros((len(places), len(places))), np.zeros(len(places))
    for row, place in enumerate(places):
        for action in range(3):
            board = catch.advance(catch.Board(*place), action, world.columns, xp=np)
            if catch.has_landed(board, world.rows):
                transitions[row] += chances[row, action] * drops
                rewards[row] -= chances[row, action] * catch.is_missed(board, world.rows)
            else:
                target = int(board.ball_row), int(board.ball_column), int(board.paddle)
                transitions[row, index[target]] += chances[row, action]
    # Every ball falls equally long, so the boards of one fall are those of the long run.
    fall = [drops]
    for _ in range(world.rows - 2):
        fall.append(fall[-1] @ transitions)
    return Chain(transitions, rewards, np.mean(fall, axis=0))


def _correlation(values: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> float:
    """Of two columns over weighted boards; 0 where one of them is constant."""
    values, targets = values - weights @ values, targets - weights @ targets
    scale = np.sqrt((weights @ values**2) * (weights @ targets**2))
    return float(weights @ (values * targets) / scale) if scale > 1e-12 else 0.0


def _catch_probability(table: dict[Any, np.ndarray], column: int, world: catch.Catch) -> float:
    """Of a ball in `column`: the paddle's distribution, step by step to the landing."""
    paddles = np.zeros(world.columns)
    paddles[world.columns // 2] = 1
    for ball_row in range(world.rows - 1):
        following = np.zeros(world.columns)
        for paddle, action in itertools.product(range(world.columns), range(3)):
            board = catch.Board(ball_row, column, paddle)
            target = catch.advance(board, action, world.columns, xp=np).paddle
            following[target] += paddles[paddle] * table[ball_row, column, paddle][action]
        paddles = following
    return float(paddles[column])


def main(_: list[str]) -> None:
    """Reads the run and prints what became of its networks."""
    try:
        rows = study(flags.FLAGS.run)
    except ValueError as error:
        sys.exit(str(error))
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


if __name__ == "__main__":
    # Not above: ablate.py imports this file, and has flags of its own.
    flags.DEFINE_string("run", None, "The folder of a run of train_single_agent.py in catch.", required=True)
    logging.set_verbosity(logging.WARNING)  # JAX tells of every backend that is not there
    app.run(main)
