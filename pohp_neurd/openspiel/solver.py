"""NeuRD-CIX as an OpenSpiel solver: `evaluate_and_update_policy`, then ask for policies."""

from typing import Any, NamedTuple

import jax
import numpy as np
import pyspiel

from pohp_neurd import cfr, checks, directions, exact, minimizers, self_play, shaping, tally_learners
from pohp_neurd.finite import graph
from pohp_neurd.finite import tree as trees
from pohp_neurd.openspiel import compile as compiling


class _Suited(NamedTuple):
    """What is used where the user says nothing."""

    exploration: float
    step_size: Any
    magnet_strength: Any
    magnet_speed: Any
    batch_size: int = 1
    average_power: float = 1.0


_SAMPLED, _START = checks.SAMPLED, float(checks.SAMPLED["decay_start"])
_decaying = directions.decaying
_falling = _decaying(1.0, power=0.5, start=1000.0)
_settling = _decaying(1 / 540, power=1.0, start=540.0)
_SUITED = {
    # The players take turns: such large steps need it. The magnet is a mean of the policies so far, late ones
    # most, and pulls less and less: so the current policy comes to an equilibrium.
    ("tree", "expected"): _Suited(
        0.0,
        4.0,
        _decaying(0.05, power=1.0, start=100.0),
        _decaying(0.08, power=1.0, start=100.0),
        average_power=4.0,
    ),
    ("tree", "sampled"): _Suited(
        _SAMPLED["exploration"],
        _decaying(_SAMPLED["step_size"], power=_SAMPLED["step_size_decay"], start=_START),
        _decaying(_SAMPLED["magnet_strength"], power=_SAMPLED["magnet_decay"], start=_START),
        _decaying(_SAMPLED["magnet_speed"] / _START, power=_SAMPLED["magnet_speed_decay"], start=_START),
        average_power=_SAMPLED["average_power"],
    ),
    # Agents that forget: a weak magnet, or steps too large for it, lead away again. One that moves slowly
    # goes from one regularised equilibrium to the next: keep the best policy on the way. A little exploration
    # slows improbable actions, which steadies it (studies/large_games/choose.py chose it). Where they sample,
    # the magnet moves ever more slowly, and averages the noise.
    ("graph", "expected"): _Suited(0.02, 0.4, 0.05, 0.008),
    ("graph", "sampled"): _Suited(0.02, _falling, 0.016, _settling, 4096),
}


class NeuRDCIXSolver:
    """Tabular self-play on the compiled game, in the style of OpenSpiel's CFR solvers.

    >>> solver = NeuRDCIXSolver("kuhn_poker", update="expected")
    >>> for _ in range(100):
    ...     solver.evaluate_and_update_policy()
    >>> solver.nash_conv() < 0.2
    True

    Args:
      game: an OpenSpiel game, its name, or what `compile_game` made of it. On a graph agents remember what
        its agent states hold; it has a current policy only, as agents that forget have no average one.
      update: "expected", from exact values, or "sampled", from episodes.
      learner: "neurd_cix", "neurd" or "spg"; or a regret minimiser at every information state of a tree:
        "regret_matching" (CFR), "rm_plus" (CFR+), "predictive_rm_plus" (PCFR+) or "optimistic_hedge". An
        expected update on a tree is a turn of every player, a sampled one of the first three of one player.
      exploration: η of NeuRD-CIX, and of sampled regrets; by default 0, where sampled 0.01, on a graph 0.02.
      play_exploration: ε, with which sampled episodes are played by (1 − ε) π + ε uniform, and corrected for
        that; by default 0.25 on a tree, where every history has a learnt value. SPG has none.
      step_size: for returns that are scaled to [-1, 0]; a number or a schedule of the updates.
      magnet_strength: of the pull to a slowly moving policy, for the same returns; 0 for none, or a schedule.
      magnet_speed: how far it moves at update t, a number or a schedule.
      threshold: beyond which no centred logit is pushed; None for none.
      entropy_cost: of the pull to the uniform policy, for the same returns.
      batch_size: episodes of one sampled update; by default 1,024 or more by the size of the game, and 4,096
        on a graph.
      average_power: p of the weight t^p that update t has in the average policy; by default 1, 0 for regret
        matching, 2 for its predictive form, and 2 for sampled or 4 for expected updates of the first three.
      precision: "float32" or "float64", of expected updates on a tree; by default the latter.
      sampling: of sampled updates on a tree: "outcome", whole episodes, or "external", chance and the other
        players only, while the one that learns tries every action; 32 such samples an update by default.
      seed: of the sampled episodes.
    """

    def __init__(
        self,
        game: Any,
        *,
        update: str = "expected",
        learner: str = "neurd_cix",
        exploration: float | None = None,
        play_exploration: float | None = None,
        step_size: Any = None,
        magnet_strength: Any = None,
        magnet_speed: Any = None,
        threshold: float | None = None,
        entropy_cost: float = 0.0,
        batch_size: int | None = None,
        average_power: float | None = None,
        precision: str | None = None,
        sampling: str = "outcome",
        seed: int = 0,
    ) -> None:
        checks.one_of("update", update, ("expected", "sampled"))
        checks.one_of("learner", learner, (*checks.LEARNERS, *checks.MINIMIZERS))
        sampled = update == "sampled"
        is_world = isinstance(game, trees.Tree | graph.Graph)
        tree: Any = game if is_world else compiling.compile_game(game)
        self._tree = tree
        self.decisions = 0
        """Of all players in the sampled episodes so far."""
        self._sampled = sampled
        self._forgets = isinstance(tree, graph.Graph)
        suited = _SUITED["graph" if self._forgets else "tree", update]
        power = (
            checks.MINIMIZERS.get(learner, suited.average_power) if average_power is None else average_power
        )
        if learner in checks.MINIMIZERS:
            unread = {
                "magnet_strength": magnet_strength,
                "magnet_speed": magnet_speed,
                "threshold": threshold,
                "entropy_cost": entropy_cost or None,
                "step_size": None if learner == "optimistic_hedge" else step_size,
            }
            if not sampled:
                of_samples = (exploration, play_exploration, batch_size)
                unread |= zip(("exploration", "play_exploration", "batch_size"), of_samples, strict=True)
            refused = [name for name, value in unread.items() if value is not None]
            if self._forgets:
                raise ValueError(f"learner={learner} takes a tree with perfect recall.")
            if refused:
                raise ValueError(f"learner={learner} does not read {', '.join(refused)}: leave it out.")
        if batch_size is not None and not sampled:
            raise ValueError("batch_size is for sampled updates: leave it out.")
        if precision is not None and (sampled or self._forgets):
            raise ValueError("precision is for expected updates on a tree: leave it out.")
        checks.one_of("precision", precision or "float64", ("float32", "float64"))
        checks.one_of("sampling", sampling, checks.SAMPLINGS)
        external = sampling == "external"
        if external and (not sampled or self._forgets or play_exploration is not None):
            raise ValueError("sampling=external is for sampled updates on a tree, without play_exploration.")
        of_histories = sampled and not self._forgets and learner != "spg" and not external
        if play_exploration and not of_histories:
            raise ValueError("play_exploration is for sampled updates on a tree, but not for learner=spg.")
        if play_exploration is None:
            play_exploration = _SAMPLED["play_exploration"] if of_histories else 0.0
        scale = self_play.scale_of(tree)
        average = None if self._forgets else self_play.Weights(power)
        strength = suited.magnet_strength if magnet_strength is None else magnet_strength
        speed = suited.magnet_speed if magnet_speed is None else magnet_speed
        learning: dict[str, Any] = {
            "step_size": suited.step_size if step_size is None else step_size,
            "magnet": shaping.Magnet(strength, speed) if strength else None,
            "threshold": threshold,
            "entropy_cost": entropy_cost,
            "average_over": "visits",
        }
        exploration = suited.exploration if exploration is None else exploration
        step = checks.STEP_SIZE if step_size is None else step_size
        if average is not None and not sampled:
            if learner in checks.LEARNERS:
                local = cfr.table(directions.rule(learner, exploration), scale=scale, **learning)
            else:
                local = cfr.regrets(minimizers.minimizer(learner, step / scale))
            self._loop = cfr.loop(local, average=average)
            with jax.enable_x64(True):
                self._arena: Any = cfr.arena_of(tree, precision or "float64")
        else:
            if learner in checks.LEARNERS:
                rate = 0.05 if sampled and not of_histories and not external else None
                rule = directions.rule(learner, exploration)
                seated = tally_learners.table(rule, baseline_rate=rate, **learning)
            else:
                told = directions.regrets("cix", exploration)
                seated = tally_learners.minimizing(minimizers.minimizer(learner, step), told)
            if batch_size is None:
                on_tree = sampled and not self._forgets
                batch_size = checks.suited_batch_size(tree.legal.size) if on_tree else suited.batch_size
                if external:
                    batch_size = checks.EXTERNAL_BATCH_SIZE
            self._arena = self_play.arena_of(tree)
            if not self._forgets and self._arena.form is None:
                raise ValueError(f"{tree.name} has no perfect recall, which average policies need.")
            self._loop = self_play.loop(
                seated,
                num_episodes=batch_size,
                scale=scale,
                update=update,
                alternating=sampled and not self._forgets and learner in checks.LEARNERS,
                average=average,
                baseline_of="history" if of_histories else "state",
                play_exploration=play_exploration,
                sampling=sampling,
            )
        self._key: Any = None
        first = None
        if not isinstance(self._arena, cfr.Arena):  # exact values draw nothing, and a key takes time to make
            key = jax.random.key(seed)
            first, self._key = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)
        with jax.enable_x64(True):
            self._state = self._loop.init(self._arena, key=first)

    @property
    def updates(self) -> int:
        """Updates so far."""
        return int(self._state.updates)

    def evaluate_and_update_policy(self, num_updates: int = 1) -> None:
        """One update of all players, or many in one compiled call, which is far quicker than one by one."""
        checks.at_least("num_updates", num_updates)
        with jax.enable_x64(True):
            self._state = self._loop.advance(self._arena, self._state, np.int32(num_updates), self._key)
        self.decisions += int(self._state.steps) if self._sampled else 0
        first = int(self._state.diverged)
        if first != self_play.NEVER:
            raise checks.Diverged("a logit", after=f"update {first + 1}", remedy="step_size")

    def iteration(self) -> None:
        """One update, under the name that OpenSpiel's MCCFR solvers in Python use."""
        self.evaluate_and_update_policy()

    run_iteration = iteration
    """The same, under the name that OpenSpiel's MCCFR solvers in C++ use."""

    def current_policy(self) -> Any:
        """The current policy of all players: OpenSpiel's TabularPolicy, or on a graph a `MemoryPolicy`."""
        policies = _policies()
        if self._forgets:
            return policies.MemoryPolicy(self._tree, self._table("current"))
        return policies.to_tabular_policy(self._tree, self._table("current"))

    def average_policy(self) -> Any:
        """The reach-weighted average of all policies so far as OpenSpiel's TabularPolicy."""
        return _policies().to_tabular_policy(self._tree, self._table("average"))

    def tabular_current_policy(self) -> pyspiel.TabularPolicy:
        """The current policy for algorithms of OpenSpiel in C++, such as pyspiel.nash_conv."""
        return _policies().to_pyspiel_policy(self._tree, self._table("current"))

    def tabular_average_policy(self) -> pyspiel.TabularPolicy:
        """The average policy for algorithms of OpenSpiel in C++, such as pyspiel.nash_conv."""
        return _policies().to_pyspiel_policy(self._tree, self._table("average"))

    def nash_conv(self, which: str | None = None) -> float:
        """NashConv of the average (by default, where there is one) or of the current policy, exact."""
        which = which or ("current" if self._forgets else "average")
        checks.one_of("which", which, ("average", "current"))
        at_once = isinstance(self._arena, cfr.Arena)
        return float(exact.nash_conv(self._tree, self._table(which), compiled=not at_once))

    def _table(self, which: str) -> np.ndarray:
        if which == "average" and self._forgets:
            raise ValueError("agents that forget have no average policy: ask for the current one.")
        with jax.enable_x64(True):
            find = self._loop.average if which == "average" else self._loop.policies
            return compiling.float64(find(self._arena, self._state))


def _policies() -> Any:
    """Loaded where one is asked for: OpenSpiel's Python takes a third of a second."""
    from pohp_neurd.openspiel import policies

    return policies
