"""Sampled self-play in a one-shot game: the smallest thing that shows NeuRD-CIX learn."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pohp_neurd import checks, exact, learners, policy, regularisation, tabular, types
from pohp_neurd.experiment import matrix_config, records, run_folder
from pohp_neurd.experiment.plot import nash_conv as picture
from pohp_neurd.games import matrix_game

COLUMNS = ("updates", "episodes", "steps", "seconds", "nash_conv", "nash_conv_average")


Config = matrix_config.Config


def run(
    config: Config, path: records.Path, *, overwrite: bool = False, tell: Callable[[str], None] = print
) -> dict[str, Any]:
    """Trains, tells of NashConv as it falls, leaves the run's folder, and returns the final figures."""
    payoffs = matrix_game.BIASED_ROCK_PAPER_SCISSORS
    game = matrix_game.zero_sum(payoffs, "biased rock-paper-scissors")
    # The episodes of an update, and a key for each update between two rows.
    needed = 64.0 * config.batch_size + 8.0 * config.episodes / config.batch_size / matrix_config.ROWS
    run_folder.check_memory(needed, of=f"batch_size={config.batch_size} and episodes={config.episodes}")
    with run_folder.opened(path, dataclasses.asdict(config), overwrite=overwrite) as folder:
        return _run(config, folder, game, payoffs, tell)


def _run(
    config: Config, folder: run_folder.RunFolder, game: Any, payoffs: np.ndarray, tell: Callable[[str], None]
) -> dict[str, Any]:
    learner, advance = _loop(config, payoffs - payoffs.max())
    table = tabular.table(1, payoffs.shape[0])
    states = jax.vmap(lambda _: learner.init(table.init(key=jax.random.key(0))))(jnp.arange(2))
    total = jnp.zeros((2, payoffs.shape[0]))
    updates = config.episodes // config.batch_size // matrix_config.ROWS
    rows: list[dict[str, Any]] = []
    start = time.perf_counter()
    for block in range(matrix_config.ROWS):
        key = jax.random.fold_in(jax.random.key(config.seed), block)
        (states, total), current = advance((states, total), key, updates)
        done = (block + 1) * updates
        if not checks.all_finite(states):
            raise checks.Diverged("a logit", after=f"{done:,} updates", remedy="step_size")
        rows.append(
            {
                "updates": done,
                "episodes": done * config.batch_size,
                "steps": 2 * done * config.batch_size,
                "seconds": round(time.perf_counter() - start, 3),
                "nash_conv": exact.nash_conv(game, np.asarray(current)),
                "nash_conv_average": exact.nash_conv(game, np.asarray(total) / done),
            }
        )
        records.write_csv(folder.metrics, rows, COLUMNS)
        tell(
            f"{rows[-1]['episodes']:>8,} episodes   NashConv {rows[-1]['nash_conv']:.4f}   "
            f"of the average policy {rows[-1]['nash_conv_average']:.4f}"
        )
    picture.draw(folder.curve, rows, title=f"{config.learner} in {game.name}")
    policies = np.asarray(current).round(4).tolist()
    return {**rows[-1], "policy": policies, "equilibrium": [0.25, 0.5, 0.25], "curve": str(folder.curve)}


def _loop(config: Config, payoffs: np.ndarray) -> tuple[learners.Learner, Any]:
    """The learner, and a jitted function that makes many updates of both agents."""
    num_actions, size = payoffs.shape[0], config.batch_size
    model = tabular.table(1, num_actions)
    learner = learners.learner(
        model.apply,
        learners.rule(config.learner, config.exploration),
        learners.sgd(config.step_size),
        magnet=regularisation.Magnet(config.magnet_strength, config.magnet_speed),
    )
    # The game is symmetric but for the sign: the second agent's payoffs are minus the first's, transposed.
    worth = jnp.asarray(np.stack([payoffs, -payoffs.T + payoffs.min()]), jnp.float32)
    legal = jnp.ones((size, num_actions), bool)

    def update(carry: Any, key: types.Key) -> tuple[Any, None]:
        states, total = carry
        chances = _policies(states)
        keys = jax.random.split(key, (2, size))
        actions = jax.vmap(lambda p, ks: jax.vmap(lambda k: policy.sample(p, key=k))(ks))(chances, keys)
        returns = jnp.stack([worth[0][actions[0], actions[1]], worth[1][actions[1], actions[0]]])
        taken = jnp.take_along_axis(chances, actions, axis=1)

        def learn(state: Any, action: jax.Array, probability: jax.Array, return_: jax.Array) -> Any:
            row = jnp.zeros(size, jnp.int32)
            # The batch's mean return as the baseline: each decision's own share in it is a bias of 1 / size.
            decisions = learners.Decision(
                row, legal, action, probability, return_, baseline=jnp.mean(return_), weight=1.0 / size
            )
            return learner.update(state, decisions)[0]

        return (jax.vmap(learn)(states, actions, taken, returns), total + chances), None

    @jax.jit
    def advance(carry: Any, keys: jax.Array) -> tuple[Any, jax.Array]:
        carry, _ = jax.lax.scan(update, carry, keys)
        return carry, _policies(carry[0])

    return learner, lambda carry, key, updates: advance(carry, jax.random.split(key, updates))


def _policies(states: learners.State) -> jax.Array:
    logits = states.parameters.logits[:, 0]
    return jax.vmap(policy.probabilities)(logits, jnp.ones(logits.shape, bool))
