"""A run of self-play in a game: which kind the game allows, and the task of a compiled one."""

import contextlib
import dataclasses
import functools
import sys
import time
from collections.abc import Collection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pohp_neurd import (
    cfr,
    checks,
    exact,
    minimizers,
    neural,
    openspiel,
    self_play,
    tally_learners,
)
from pohp_neurd.experiment import executor, game_config, game_task, live, schedules
from pohp_neurd.experiment import run as run_loop
from pohp_neurd.finite import graph
from pohp_neurd.finite import tree as trees
from pohp_neurd.openspiel import compile as compiling
from pohp_neurd.openspiel import saved
from pohp_neurd.results import records


def run(
    config: game_config.Config,
    path: records.Path,
    *,
    given: Collection[str] = (),
    where: game_config.Actors | None = None,
    **how: Any,
) -> dict[str, Any]:
    """Runs or resumes self-play in the folder `path`, `how` as `run.finish` says; the final figures.

    What the config leaves open is chosen for the kind of run. Fields that are `given`, as somebody has set
    them, are refused where the run does not read them. `where` is for live play.
    """
    with contextlib.ExitStack() as stack:

        def task() -> run_loop.Task:
            _check_memory(config)
            chosen, made = build(config) if where is None else build(config, where, stack)
            game_config.refuse_unread(chosen, given)
            return made

        return run_loop.finish(task, path, **how)


def _check_memory(config: game_config.Config) -> None:
    """Measured: 42 to 44 bytes for a step of an episode in a batch, and ten copies of a network's weights."""
    steps = (config.batch_size or 1) * openspiel.load_game(config.game).max_game_length()
    records.check_memory(40.0 * steps, of=f"batch_size={config.batch_size} in {config.game}")
    if config.policy == "neural":
        layers = ",".join(map(str, config.hidden_layers))
        needed = records.memory_of_layers(config.hidden_layers, copies=8)
        records.check_memory(needed, of=f"hidden_layers={layers}")


def build(
    config: game_config.Config,
    where: game_config.Actors | None = None,
    stack: contextlib.ExitStack | None = None,
) -> tuple[game_config.Config, run_loop.Task]:
    """The task of a config, and the config with nothing left open; workers, if any, end with `stack`."""
    # A name that is none is told of as such, and not as a game too large.
    game = openspiel.load_game(config.game)
    reasons = []
    asked = config.play
    if asked == "auto" and (config.agent_state or config.world):
        asked = "graph"  # there is nothing else that reads them
    if asked in ("auto", "compiled"):
        if compiling.may_be_larger(game, config.max_histories):
            _tell(
                f"{config.game} may have more than {config.max_histories:,} histories: they are walked, up "
                "to that many, before training begins."
            )
        try:
            tree = _tree(config.game, config.max_histories)
        except ValueError as error:
            reasons.append(str(error))
        else:
            _check_recall(config, tree)
            _check_alone(where, "a compiled game")
            config = game_config.resolved(config, "compiled", tree.legal.size)
            return config, _compiled(config, tree)
    for agent_state, world in _graphs(config, asked, game.num_players()):
        try:
            bounds = config.max_nodes, config.max_information_states
            made = _graph(config.game, agent_state, world, *bounds)
        except ValueError as error:
            reasons.append(str(error))
        else:
            _check_alone(where, "a graph")
            config = dataclasses.replace(config, agent_state=agent_state, world=world)
            config = game_config.resolved(config, "graph", made.legal.size)
            return config, _compiled(config, made)
    if asked in ("compiled", "graph"):
        raise ValueError(" ".join(dict.fromkeys(reasons)))
    if asked == "auto" and (config.policy, config.update) != ("neural", "sampled"):
        raise ValueError(f"{' '.join(reasons)} Live play takes policy=neural and update=sampled.")
    for reason in reasons:
        _tell(reason)
    config = game_config.resolved(config, "live")
    executor.make_small_calls()
    trainer, crew = live.trainer(config), None
    if stack is not None and where is not None:
        crew = stack.enter_context(live.crew(config, where, trainer))
    return config, live.task(config, trainer, crew)


def _check_alone(where: game_config.Actors | None, what: str) -> None:
    if where not in (None, game_config.Actors()):
        raise ValueError(f"executor, workers and address are for live play, but this is a run on {what}.")


def _tell(sentence: str) -> None:
    print(sentence, file=sys.stderr)


def _graphs(config: game_config.Config, asked: str, num_players: int) -> list[tuple[str, str]]:
    """The agent states and worlds to try: what is asked for, and else the finer world first.

    Alone, a responder that forgets nothing has as many information states as there are histories.
    """
    if asked not in ("auto", "graph") or (asked == "auto" and num_players == 1):
        return []
    worlds = [config.world] if config.world else ["string", "observations"]
    return [(config.agent_state or "observation", world) for world in worlds]


def _check_recall(config: game_config.Config, tree: trees.Tree) -> None:
    """Refuses what an imperfect recall does not allow, and says what is left out for it."""
    if exact.sequence_form_of(tree).slot is not None:
        return
    if config.update == "expected":
        raise ValueError(
            f"{tree.name} has no perfect recall, which update=expected needs: use update=sampled."
        )
    if config.policy == "tabular":
        print(
            f"{tree.name} has no perfect recall, which average policies need: this run has none, and saves "
            "its current policy in the average's place.",
            file=sys.stderr,
        )


@functools.lru_cache(maxsize=1)
def _tree(game: str, max_histories: int) -> trees.Tree:
    return openspiel.compile_game(openspiel.load_game(game), max_histories=max_histories)


@functools.lru_cache(maxsize=1)
def _graph(
    game: str, agent_state: str, world: str, max_nodes: int, max_information_states: int
) -> graph.Graph:
    """A graph that can be judged: one evaluation shows what that costs."""
    _tell(f"Building the graph of {game}, in which agents remember {agent_state} and the world is {world}.")
    made = openspiel.compile_game(
        openspiel.load_game(game),
        agent_state=agent_state,
        world=world,
        max_nodes=max_nodes,
    )
    begun = time.perf_counter()
    found = exact.responses(made, exact.uniform(made), max_information_states=max_information_states)
    _tell(
        f"An exact evaluation visits {sum(each.information_states for each in found):,} information states "
        f"and takes {time.perf_counter() - begun:.1f} s."
    )
    return made


class Counted(NamedTuple):
    """A loop's state with the decisions so far, which outgrow 32 bits."""

    loop: self_play.State
    steps: np.int64


@functools.lru_cache(maxsize=1)
def _loop(config: game_config.Config, world: Any) -> tuple[self_play.Loop, Any]:
    """What runs with different seeds share, so that the second compiles nothing."""
    weights = self_play.Weights(config.average_power or 0.0, config.average_forgetting or 0.0)
    if (config.play, config.policy, config.update) == game_config.KINDS["table expected"]:
        return _exact_loop(config, world, weights)
    neural_policy = config.policy == "neural"
    seen = compiling.features_of(world) if neural_policy else None
    arena = self_play.arena_of(world, features=seen)
    loop = self_play.loop(
        _network_learner(config, world, arena.seats) if neural_policy else _table_learner(config),
        num_episodes=config.batch_size or 1,
        scale=self_play.scale_of(world),
        update=config.update,
        weights=config.weights,
        alternating=bool(config.alternating),
        average=None if neural_policy or arena.form is None else weights,
        baseline_of=config.baseline_of or "state",
        play_exploration=config.play_exploration or 0.0,
        sampling=config.sampling,
    )
    return loop, arena


def _exact_loop(
    config: game_config.Config, tree: trees.Tree, weights: self_play.Weights
) -> tuple[self_play.Loop, cfr.Arena]:
    """Expected updates of a table on a tree."""
    scale = self_play.scale_of(tree)
    if config.learner in checks.MINIMIZERS:
        step = (config.step_size or 0.0) / scale
        local = cfr.regrets(minimizers.minimizer(config.learner, step))
    else:
        local = cfr.table(schedules.rule(config), **_learning(config), scale=scale, weights=config.weights)
    with jax.enable_x64(True):
        arena = cfr.arena_of(tree, config.precision)
    alternating, figures = bool(config.alternating), local.figures is not None
    return cfr.loop(local, average=weights, alternating=alternating, figures=figures), arena


def _compiled(config: game_config.Config, world: exact.World) -> run_loop.Task:
    """Self-play on a compiled game, with exact NashConv; `config` has nothing left open."""
    loop, arena = _loop(dataclasses.replace(config, seed=0), world)
    kept = world if isinstance(world, graph.Graph) else None
    neural_policy, sampled = config.policy == "neural", config.update == "sampled"
    key = jax.random.key(config.seed)
    playing = jax.random.fold_in(key, 1)

    def begin() -> Counted:
        with jax.enable_x64(True):
            return Counted(loop.init(arena, key=jax.random.fold_in(key, 0)), np.int64(0))

    def advance(state: Counted, num_updates: int) -> Counted:
        with jax.enable_x64(True):
            following = loop.advance(arena, state.loop, np.int32(num_updates), playing)
        steps = int(following.steps) if sampled else 0
        # Taken over: what is left would depend on how the run is cut into calls.
        following = following._replace(steps=jnp.zeros((), jnp.int32))
        return Counted(following, state.steps + np.int64(steps))

    def tables(state: Counted) -> np.ndarray:
        """The current policy, and the average one if there is one."""
        with jax.enable_x64(True):
            found = [np.asarray(loop.policies(arena, state.loop))]
            if neural_policy:
                smooth = state.loop._replace(learner=tally_learners.averaged(state.loop.learner))
                found.append(np.asarray(loop.policies(arena, smooth)))
            elif arena.form is not None:
                found.append(np.asarray(loop.average(arena, state.loop)))
        both = np.stack([table.astype(np.float64) for table in found])
        return both / both.sum(axis=-1, keepdims=True)

    def evaluate(state: Counted) -> run_loop.Row:
        updates = int(state.loop.updates)
        episodes = updates * (config.batch_size or 1) if sampled else 0
        found = np.asarray(exact.nash_conv(world, tables(state))).tolist()
        return {
            **{"updates": updates, "episodes": episodes, "steps": int(state.steps)},
            **dict(zip(game_task.JUDGED, found, strict=False)),
            **game_task.info_row(state.loop.info),
        }

    def policies(state: Counted) -> saved.Saved:
        if neural_policy:
            learnt = state.loop.learner
            average = tally_learners.averaged(learnt).parameters
            return game_task.networks(config, learnt.parameters, average, kept)
        found, about = tables(state), saved.About(config.game, "tabular")
        if kept is not None:
            return saved.Saved(about._replace(compiled="graph"), found[0], None, world=kept)
        return saved.Saved(about, found[0], found[-1])

    def judged(folder: records.RunFolder, done: int, state: Counted, row: run_loop.Row) -> None:
        figure, which = min((row[name], place) for place, name in enumerate(game_task.JUDGED) if name in row)
        found = policies(state)
        saved.save_best(folder.policy, done, (found.current, found.average)[which], figure)

    def lost(state: Counted) -> int | None:
        first = int(state.loop.diverged)
        return None if first == self_play.NEVER else first + 1

    opening = f"{config.game} as a {_size(world)}."
    parts = (begin, advance, evaluate, policies, lost)
    return game_task.task(config, game_task.INFO, *parts, judged=judged, opening=opening)


def _size(world: exact.World) -> str:
    if isinstance(world, graph.Graph):
        return f"graph: {world.num_nodes:,} nodes, {world.num_agent_states:,} agent states"
    return f"tree: {world.num_histories:,} histories, {world.num_information_states:,} information states"


def _state_baseline(config: game_config.Config) -> bool:
    """Whether the learner itself has a baseline."""
    return game_task.has_critic(config) and config.update == "sampled" and config.sampling == "outcome"


def _table_learner(config: game_config.Config) -> tally_learners.TallyLearner:
    rate = 0.05 if _state_baseline(config) else None
    if config.learner in checks.MINIMIZERS:
        minimizer = minimizers.minimizer(config.learner, config.step_size or 0.0)
        return tally_learners.minimizing(
            minimizer, schedules.rule(config), baseline_rate=rate, average_over=config.average_over
        )
    return tally_learners.table(schedules.rule(config), baseline_rate=rate, **_learning(config))


def _learning(config: game_config.Config) -> dict[str, Any]:
    """What all tables have."""
    return {
        "step_size": schedules.step_size(config),
        "magnet": schedules.magnet(config),
        "threshold": config.threshold,
        "entropy_cost": config.entropy_cost,
        "average_over": config.average_over,
    }


def _network_learner(
    config: game_config.Config, world: exact.World, seats: tally_learners.Seats
) -> tally_learners.TallyLearner:
    assert seats.all.features is not None, "a network sees features"
    every = len(seats.sizes) if config.alternating else 1
    firsts = (seat % every for seat in range(len(seats.sizes)))
    one_each = [schedules.optimizer(config, every=every, first=first) for first in firsts]
    return tally_learners.network(
        neural.network(
            seats.all.features.shape[1],
            world.num_actions,
            torso=config.hidden_layers,
            critic=game_task.has_critic(config),
        ),
        schedules.rule(config),
        [schedules.optimizer(config)] if config.shared else one_each,
        magnet=schedules.magnet(config),
        common_mode=config.common_mode,
        threshold=config.threshold,
        entropy_cost=config.entropy_cost,
        baseline=_state_baseline(config),
        average_rate=config.average_forgetting or 0.0,
        alternating=bool(config.alternating),
    )
