"""What became of the agents of a catch experiment: their policy, torso and critic on every board there is.

Reads the newest checkpoint of a run in catch; the values to compare with are exact.
"""

import itertools
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pohp_neurd import checkpoint, lifetimes, neural, policy
from pohp_neurd.experiment import records, run_folder, single_agent
from pohp_neurd.games import catch

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
)


def study(path: records.Path) -> list[dict[str, Any]]:
    """A row of COLUMNS for every run in the folder `path`.

    `misses` is the exact probability of missing a ball under the policy as it is; `columns_missed` counts the
    columns in which a ball is missed more often than not; `silent_units` are the shares of ReLUs that are 0
    on every board; `logit_spread` and `value_spread` are standard deviations, over actions and over boards.
    """
    folder = run_folder.RunFolder(pathlib.Path(path))
    content = records.read_json(folder.config)
    content.update({name: tuple(content[name]) for name in ("explorations", "learning_rates")})
    config = single_agent.Config(**content)
    if config.environment != "catch":
        raise ValueError(f"this study is of catch, but {path} is a run in {config.environment}.")
    torso = (config.width, config.width)
    like = jax.eval_shape(
        lambda runs: lifetimes.begin_all(config.world(), config.options(), runs, torso=torso), config.runs()
    )
    restored = checkpoint.restore(folder.checkpoints, like)
    if restored is None:
        raise ValueError(f"there is no checkpoint in {path}.")
    rows = []
    for index, (rate, exploration, seed) in enumerate(config.settings()):
        life = jax.tree.map(lambda leaf, i=index: jnp.asarray(leaf[i]), restored.tree)
        agent = lifetimes.paper_agent(
            config.world(), config.options(), learning_rate=rate, exploration=exploration, torso=torso
        )
        found = inspect(agent.parameters(life.agent), torso)
        rows.append({"learning_rate": rate, "exploration": exploration, "seed": seed, **found})
    return rows


def inspect(parameters: Any, torso: tuple[int, ...] = neural.PAPER_TORSO) -> dict[str, Any]:
    """The figures of one network, on all boards of 10 x 5 catch."""
    world = catch.Catch()
    places = list(itertools.product(range(world.rows - 1), range(world.columns), range(world.columns)))
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
    values = np.asarray(output.value)
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
    }


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
