"""The trade that exploration makes, exactly: bias and variance of the update along a run of self-play.

    python studies/bias_variance/bias_variance.py --output_dir=runs/bias_variance

A run of sampled NeuRD-CIX in Leduc poker is stopped at every tenth. For the policy that it has there, and for
explorations from 0 to 1, the mean and the variance of what one episode adds to the direction are computed
over all terminal histories: nothing is sampled. Directions are centred at every state, as only differences of
logits move a policy. Two baselines: none, as the paper writes the update, and the state's exact value.

With d_η of one episode at all information states, and g = E[d_0], the direction of exact NeuRD:

    bias      ‖E[d_η] − g‖² / ‖g‖²
    variance  Σ Var[d_η] / ‖g‖²; a batch of B episodes has 1/B of it
    along     E[d_η]·g / ‖g‖²
    error     min_c E‖c d_η − g‖² / ‖g‖² = 1 − along² / (‖E[d_η]‖² / ‖g‖² + variance / B)

The error leaves the scale c free, as a step size does: a direction that is merely too short has none.
"""

import os

# One core: set before JAX starts.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import app, flags, logging

from pohp_neurd import directions, exact, openspiel
from pohp_neurd.finite import tree as trees
from pohp_neurd.results import figures, records, table

EXPLORATIONS = (0.0, 0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
BASELINES = ("none", "value")
BATCHES = (1, 16, 256, 2048, 16384, 131072)
BATCH = 2048
"""Of the run itself."""
COLUMNS = ("episodes", "nash_conv", "baseline", "exploration", "bias", "variance", "along")
SETTINGS: dict[str, Any] = {
    "exploration": 0.02,
    "step_size": directions.decaying(1.0, power=0.5, start=1000.0),
    "magnet_strength": 0.01,
    "magnet_speed": 0.0004,
    "batch_size": BATCH,
}


class Moments(NamedTuple):
    """What follows each action of each information state in an episode, over all episodes."""

    visits: np.ndarray
    """The probability that the action is taken there."""
    returns: np.ndarray
    """E[1{taken} G], with G shifted to be never positive and scaled to [−1, 0]."""
    squares: np.ndarray
    """E[1{taken} G²]."""


def moments(tree: trees.Tree, policy: np.ndarray) -> Moments:
    """Sums over terminal histories, each of which adds to all decisions on its way."""
    reach = exact.quantities(tree, policy).reach
    end = np.flatnonzero(tree.player == trees.TERMINAL)
    here, scale = end, -tree.shifted_returns.min()
    found = np.zeros((3, *policy.shape))
    while len(here):
        above, action = tree.parent[here], tree.incoming_action[here]
        agent = tree.player[above]
        acts = (agent >= 0) & (above >= 0)
        at = tree.information_state[above[acts]], action[acts]
        got = (
            tree.shifted_returns[end, np.maximum(agent, 0)]
            - tree.shifted_returns[above, np.maximum(agent, 0)]
        )
        got, chance = got[acts] / scale, reach[end[acts]]
        for sums, value in zip(found, (chance, chance * got, chance * got**2), strict=True):
            np.add.at(sums, at, value)
        end, here = end[above > 0], above[above > 0]
    return Moments(*found)


def bias_and_variance(
    found: Moments,
    policy: np.ndarray,
    legal: np.ndarray,
    exploration: float,
    baseline: str,
) -> tuple[np.ndarray, float]:
    """The expectation of the centred direction of one episode, and the sum of its variances.

    A state is visited at most once in an episode (perfect recall), so that an episode's direction there is
    that of one decision: d(a) = (G − V) / β(A) · (1{a = A} − 1 / n), after centring over n legal actions.
    """
    returns, squares = found.returns, found.squares
    if baseline == "value":
        reached = found.visits.sum(axis=1, keepdims=True)
        value = returns.sum(axis=1, keepdims=True) / np.where(reached > 0, reached, 1.0)
        squares = squares - 2 * value * returns + value**2 * found.visits
        returns = returns - value * found.visits
    weight = legal / np.where(legal, np.minimum(1.0, policy + exploration), 1.0)
    # [S, A taken, a moved]
    pattern = (np.eye(policy.shape[1])[None] - 1 / legal.sum(axis=1)[:, None, None]) * legal[:, None, :]
    mean = np.einsum("sb,sba->sa", weight * returns, pattern)
    square = np.einsum("sb,sba->sa", weight**2 * squares, pattern**2)
    return mean, float(np.sum(square - mean**2))


def rows_of(tree: trees.Tree, policy: np.ndarray, episodes: int) -> list[dict[str, Any]]:
    """A row of COLUMNS for each baseline and exploration."""
    found, nash_conv = moments(tree, policy), exact.nash_conv(tree, policy)
    rows = []
    for baseline in BASELINES:
        truth, _ = bias_and_variance(found, policy, tree.legal, 0.0, baseline)
        size = np.sum(truth**2)
        for exploration in EXPLORATIONS:
            mean, variance = bias_and_variance(found, policy, tree.legal, exploration, baseline)
            bias, along = np.sum((mean - truth) ** 2) / size, np.sum(mean * truth) / size
            numbers = (bias, variance / size, along)
            found_here = (episodes, nash_conv, baseline, exploration, *numbers)
            rows.append(dict(zip(COLUMNS, found_here, strict=True)))
    return [{k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in row.items()} for row in rows]


def run(folder: records.Path, game: str, episodes: int, seed: int) -> list[dict[str, Any]]:
    """The rows of a run, written with their figure."""
    tree = openspiel.compile_game(game)
    solver = openspiel.NeuRDCIXSolver(tree, update="sampled", seed=seed, **SETTINGS)
    rows: list[dict[str, Any]] = []
    for tenth in range(11):
        updates = tenth * episodes // BATCH // 10
        if updates > solver.updates:
            solver.evaluate_and_update_policy(updates - solver.updates)
        rows += rows_of(tree, openspiel.table_of(tree, solver.current_policy()), updates * BATCH)
        print(f"{rows[-1]['episodes']:,} episodes, NashConv {rows[-1]['nash_conv']:.4f}", flush=True)
    place = pathlib.Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    records.write_csv(place / "rows.csv", rows, COLUMNS)
    draw(place / "bias_variance.png", rows)
    return rows


def error(row: Mapping[str, Any], batch: int) -> float:
    """What is left of the squared direction after the best multiple of an update from a batch.

    >>> error({"bias": 0.0, "variance": 4.0, "along": 1.0}, 4)
    0.5
    """
    size = row["bias"] + 2 * row["along"] - 1
    return 1 - row["along"] ** 2 / (size + row["variance"] / batch)


def best(rows: Sequence[table.Row], batch: int) -> table.Row:
    """The row with the least error in batches of so many episodes."""
    return min(rows, key=lambda row: error(row, batch))


def best_explorations(rows: Sequence[table.Row]) -> str:
    """The README's table: the exploration of least error, along the run and over batch sizes."""
    shown = []
    for (episodes, nash_conv, baseline), here in table.groups(
        rows, ["episodes", "nash_conv", "baseline"]
    ).items():
        chosen = {f"B{batch}": f"{best(here, batch)['exploration']:g}" for batch in BATCHES}
        shown.append(
            {"episodes": f"{episodes:,}", "nash_conv": f"{nash_conv:.3f}", "baseline": baseline} | chosen
        )
    columns = {"baseline": "{baseline}", "episodes so far": "{episodes}", "NashConv": "{nash_conv}"}
    columns |= {f"B = {batch:,}": f"{{B{batch}}}" for batch in BATCHES}
    shown.sort(key=lambda row: row["baseline"])
    return table.markdown(shown, columns)


def draw(path: records.Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Over exploration: bias and variance at three moments, a panel for each baseline; then the error."""
    moments_of_run = sorted({row["episodes"] for row in rows})
    shown = [moments_of_run[place] for place in (0, len(moments_of_run) // 10, len(moments_of_run) - 1)]
    with figures.figure(path, width=12.0, height=4.4) as page:
        panels = page.subplots(1, 3)
        for axes, baseline in zip(panels[:2], BASELINES, strict=True):
            for index, episodes in enumerate(shown):
                here = [r for r in rows if r["episodes"] == episodes and r["baseline"] == baseline]
                colour, x = figures.look(index).color, [row["exploration"] for row in here]
                label = f"after {episodes / 1e6:.2g}M episodes"
                bias = [row["bias"] if row["exploration"] else np.nan for row in here]
                axes.plot(x, bias, "-", marker="o", markersize=4, color=colour, label=f"bias², {label}")
                noise = [row["variance"] / BATCH for row in here]
                axes.plot(x, noise, "--", marker="s", markersize=4, color=colour, label=f"variance, {label}")
            axes.set_yscale("log")
            axes.set_title(f"baseline: {baseline}", fontsize=10)
        panels[0].set_ylabel(f"share of the squared direction, {BATCH:,} episodes")
        for index, batch in enumerate(BATCHES):
            last = table.select(rows, {"episodes": shown[-1], "baseline": "value"})
            left = [error(row, batch) for row in last]
            drawn = figures.look(index)._asdict()
            panels[2].plot([row["exploration"] for row in last], left, label=f"B = {batch:,}", **drawn)
        panels[2].set_ylabel("error, at a scale of its own")
        panels[2].set_title(f"baseline: value, after {shown[-1] / 1e6:.2g}M episodes", fontsize=10)
        panels[2].legend(fontsize=8)
        for axes in panels:
            axes.set_xscale("symlog", linthresh=0.001)
            axes.set_xlim(0, 1.1)
            axes.set_xlabel("exploration")
        figures.legend_below(page, *panels[0].get_legend_handles_labels(), ncols=3, fontsize=8)


def main(_: Sequence[str]) -> None:
    """Runs what flags say."""
    given = flags.FLAGS
    print(best_explorations(run(given.output_dir, given.game, given.episodes, given.seed)))


if __name__ == "__main__":
    flags.DEFINE_string("game", "leduc_poker", "An OpenSpiel game with perfect recall.")
    flags.DEFINE_integer("episodes", 10_000_000, "Of the whole run.", lower_bound=10 * BATCH)
    flags.DEFINE_integer("seed", 100, "Of the run.")
    flags.DEFINE_string("output_dir", "runs/bias_variance", "The folder for the rows and the figure.")
    logging.set_verbosity(logging.WARNING)  # JAX tells of every backend that is not there
    app.run(main)
