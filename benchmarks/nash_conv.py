"""Exact NashConv against OpenSpiel's, compile time, and how both grow: one run, one core."""

import os

# One core for every side: set before JAX starts.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import argparse  # noqa: E402
import dataclasses  # noqa: E402
import time  # noqa: E402

import jax  # noqa: E402
import numpy as np  # noqa: E402
import pyspiel  # noqa: E402
from open_spiel.python import policy as openspiel_policy  # noqa: E402
from open_spiel.python import rl_agent, rl_agent_policy  # noqa: E402
from open_spiel.python.algorithms import exploitability  # noqa: E402

from pohp_neurd import exact, neural, openspiel  # noqa: E402
from pohp_neurd import policy as policies  # noqa: E402

MILLION = "liars_dice(dice_sides=7)"


def seconds(function, repeats):
    """The best of several runs: what the machine can do when nothing else is on it."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def random_table(tree):
    weights = np.random.default_rng(0).exponential(size=tree.legal.shape) * tree.legal
    return weights / weights.sum(axis=1, keepdims=True)


def table_nash_conv(name, bar):
    game = pyspiel.load_game(name)
    tree = openspiel.compile_game(game)
    table = random_table(tree)
    theirs = openspiel.to_pyspiel_policy(tree, table)
    ours = exact.nash_conv(tree, table)  # compiles
    apart = abs(ours - pyspiel.nash_conv(game, theirs))
    fast = seconds(lambda: exact.nash_conv(tree, table), 200 if name != "liars_dice" else 50)
    slow = seconds(lambda: pyspiel.nash_conv(game, theirs), 5 if name != "liars_dice" else 2)
    fast = min(fast, seconds(lambda: exact.nash_conv(tree, table), 50))
    print(
        f"NashConv of a table, {name}: {fast * 1e3:.3f} ms, pyspiel.nash_conv {slow * 1e3:.1f} ms: "
        f"{slow / fast:,.0f}x (bar {bar:,}x), apart by {apart:.1e}"
    )


class NetworkAgent(rl_agent.AbstractAgent):
    """A haiku network behind OpenSpiel's own interface: one jitted call for each state."""

    def __init__(self, player_id, model, parameters, num_actions):
        self.player_id, self._parameters, self._num_actions = player_id, parameters, num_actions
        self._act = jax.jit(lambda p, x, legal: policies.probabilities(model.apply(p, x).logits, legal))

    def step(self, time_step, is_evaluation=True):
        observations = time_step.observations
        legal = np.zeros(self._num_actions, bool)
        legal[observations["legal_actions"][self.player_id]] = True
        features = np.asarray(observations["info_state"][self.player_id], np.float32)
        chances = np.asarray(self._act(self._parameters, features, legal), np.float64)
        return rl_agent.StepOutput(0, chances / chances.sum())


def network_nash_conv(torso, bar):
    game = pyspiel.load_game("leduc_poker")
    tree = openspiel.compile_game(game)
    model = neural.network(tree.features.shape[1], tree.num_actions, torso=torso)
    parameters = model.init(key=jax.random.key(0))
    ours = openspiel.nash_conv(tree, (model, parameters))
    agents = {i: NetworkAgent(i, model, parameters, tree.num_actions) for i in range(2)}
    joint = rl_agent_policy.JointRLAgentPolicy(game, agents, use_observation=False)
    start = time.perf_counter()
    theirs = exploitability.nash_conv(game, joint)
    slow = time.perf_counter() - start
    fast = seconds(lambda: openspiel.nash_conv(tree, (model, parameters)), 20)
    print(
        f"NashConv of a network {torso}, leduc_poker: {fast * 1e3:.1f} ms, JointRLAgentPolicy {slow:.1f} s: "
        f"{slow / fast:,.0f}x (bar {bar:,}x), apart by {abs(ours - theirs):.1e}"
    )


def compile_time(name, repeats):
    game = pyspiel.load_game(name)
    ours = theirs = float("inf")
    for _ in range(repeats):
        ours = min(ours, seconds(lambda: openspiel.compile_game(game), 1))
        theirs = min(theirs, seconds(lambda: openspiel_policy.TabularPolicy(game), 1))
    print(
        f"compiling {name}: {ours * 1e3:.1f} ms, TabularPolicy(game) {theirs * 1e3:.1f} ms: "
        f"{theirs / ours:.2f}x (bar 1x)"
    )


def size(tree):
    arrays = [getattr(tree, field.name) for field in dataclasses.fields(tree)]
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def growth():
    """Time and bytes a history, on games of growing size."""
    costs = {}
    for name in ("leduc_poker", "liars_dice", MILLION):
        compiling = seconds(lambda name=name: openspiel.compile_game(name), 2)
        tree = openspiel.compile_game(name)
        table = random_table(tree)
        exact.nash_conv(tree, table)
        evaluating = seconds(lambda tree=tree, table=table: exact.nash_conv(tree, table), 20)
        count = tree.num_histories
        costs[name] = (compiling / count, evaluating / count)
        print(
            f"{name}: {count:,} histories, {size(tree) / count:.0f} bytes, compiling "
            f"{compiling / count * 1e6:.2f} us, NashConv {evaluating / count * 1e9:.2f} ns a history"
        )
    small, large = costs["liars_dice"], costs[MILLION]
    print(
        f"{MILLION} against liars_dice, a history: compiling {large[0] / small[0]:.2f}x, "
        f"NashConv {large[1] / small[1]:.2f}x (bar 1.5x)"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args()
    table_nash_conv("kuhn_poker", 1)
    table_nash_conv("leduc_poker", 300)
    table_nash_conv("liars_dice", 1500)
    network_nash_conv((128,), 1000)
    network_nash_conv(neural.PAPER_TORSO, 1000)
    compile_time("leduc_poker", 5)
    compile_time("liars_dice", 2)
    growth()


if __name__ == "__main__":
    main()
