"""Exact quantities of a finite process under a policy: nothing sampled, everything in float64.

Names and equations of Morrill et al. (2022), Section 2.1: reach P[h], realization P[s], belief ξ_s(h), value
v_s, action value q_s(a), advantage ρ_s(a); the expectation of every learner's direction; best responses and
NashConv. A policy is an array [S, A] in the order of the tree's information states, or of the agent states of
an `agent_state.Index`. Best responses are always over all that an agent has seen and done.
"""

import functools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import tqdm
from jax import Array
from jaxtyping import Float

from pohp_neurd import agent_state, checks, types
from pohp_neurd.finite import beliefs, evaluation, graph, sequence_form
from pohp_neurd.finite import tree as trees

Policy = types.ArrayLike
"""[S, A], or a stack [K, S, A] where that is said: checked by `check_policy`, with better words."""

_TOLERANCE = 1e-5  # of a row's sum: what a float32 softmax over many actions strays by


class BestResponse(NamedTuple):
    """An agent's best answer to the others."""

    value: float
    policy: Float[np.ndarray, "S A"] | None
    """The given policy with the agent's rows replaced; None if the best answer needs more memory than
    the agent's states have."""


MAX_INFORMATION_STATES = 1_000_000_000

World = trees.Tree | graph.Graph


def uniform(tree: World) -> Float[np.ndarray, "S A"]:
    """The policy that takes all legal actions with the same probability."""
    return tree.legal / np.maximum(tree.legal.sum(axis=1, keepdims=True), 1)


def nash_conv(
    tree: World, policy: Policy, index: agent_state.Index | None = None, *, compiled: bool = True
) -> float | Float[np.ndarray, "K"]:
    """NashConv of `policy`, or of each of a stack of policies [K, S, A].

    On a tree the first call compiles for seconds, and each after takes a fraction of a millisecond in a game
    such as Leduc poker; not `compiled`, one policy takes some milliseconds at once. On a graph the policy is
    that of agents who may forget; responders remember everything.

    >>> from pohp_neurd.games import matrix_game
    >>> game = matrix_game.zero_sum(matrix_game.BIASED_ROCK_PAPER_SCISSORS)
    >>> nash_conv(game, np.array([[0.25, 0.5, 0.25], [0.25, 0.5, 0.25]]))
    0.0
    """
    if isinstance(tree, graph.Graph):
        if np.ndim(policy) == 3:
            return np.array([nash_conv(tree, each) for each in np.asarray(policy)])
        return float(np.sum(best_response_values(tree, policy) - expected_returns(tree, policy)))
    if compiled:
        found = _evaluate(tree, policy, index)
    else:
        found = evaluation.outcome(_host_form_of(tree, index), _table(tree, policy, index))
    gains = np.sum(found.best - found.expected, axis=-1)
    return float(gains) if gains.ndim == 0 else gains


def exploitability(tree: World, policy: Policy, index: agent_state.Index | None = None) -> Any:
    """NashConv / 2: what an opponent wins on average; defined for two-player zero-sum games."""
    if tree.num_agents != 2 or np.ptp(tree.final_returns.sum(axis=1)) > 1e-9:
        raise ValueError(
            f"exploitability is defined for two-player zero-sum games, which {tree.name} is not."
        )
    return nash_conv(tree, policy, index) / 2


def expected_returns(tree: World, policy: Policy, index: agent_state.Index | None = None) -> np.ndarray:
    """Every agent's expected return [P], or [K, P] for a stack of policies."""
    if isinstance(tree, graph.Graph):
        return tree.expected_returns(_table(tree, policy))
    return _evaluate(tree, policy, index).expected


def best_response_values(tree: World, policy: Policy, index: agent_state.Index | None = None) -> np.ndarray:
    """What every agent would get by a best response [P], or [K, P] for a stack of policies."""
    if isinstance(tree, graph.Graph):
        return np.array([response.value for response in responses(tree, policy)])
    return _evaluate(tree, policy, index).best


def responses(
    world: graph.Graph,
    policy: Policy,
    *,
    max_information_states: int = MAX_INFORMATION_STATES,
    num_threads: int | None = None,
) -> tuple[Any, ...]:
    """Every agent's `responder.Response` on a graph, with perfect recall: value and information states.

    All cores are used unless `num_threads` says how many. A responder that can come to more than
    `max_information_states` is refused as soon as that is known.
    """
    try:
        from pohp_neurd.finite import responder  # numba takes a second to load, and trees do not need it
    except ModuleNotFoundError as error:
        raise ValueError(
            f"best responses on graphs need {error.name}: pip install pohp_neurd[large]."
        ) from None

    table = _table(world, policy)
    found = []
    for agent in range(world.num_agents):
        name = f"responding as player {agent}"
        with tqdm.tqdm(desc=name, unit=" states", delay=3, disable=None, leave=False) as progress:
            found.append(
                responder.best_response(
                    responder.moves(world, table, agent),
                    max_information_states=max_information_states,
                    num_threads=num_threads,
                    progress=progress.update,
                )
            )
    return tuple(found)


def best_response(
    tree: trees.Tree, policy: Policy, agent: int, index: agent_state.Index | None = None
) -> BestResponse:
    """The best response of one agent to the others' part of `policy`: its value, and how it acts."""
    checks.index("agent", agent, tree.num_agents)
    form, table = sequence_form_of(tree, index), _table(tree, policy, index)
    with jax.enable_x64(True):
        value, action_values = _respond(form, table, agent)
    if index is not None or form.slot is None:
        return BestResponse(float(value), None)
    best, rows = np.array(table), tree.states_of(agent)
    values = np.where(tree.legal[rows], np.asarray(action_values)[rows], -np.inf)
    best[rows] = np.eye(tree.num_actions)[np.argmax(values, axis=1)]
    return BestResponse(float(value), best)


def quantities(world: World, policy: Policy, index: agent_state.Index | None = None) -> beliefs.Quantities:
    """Reach, beliefs, values and advantages of every history (or node of a graph) and every agent state."""
    if index is not None:
        state = index.state
    else:
        state = world.agent_state if isinstance(world, graph.Graph) else world.information_state
    return beliefs.quantities(world, state, _table(world, policy, index))


def expected_direction(
    tree: World,
    policy: Policy,
    learner: str,
    exploration: float = 0.0,
    *,
    weights: str = "realization",
    baseline: str = "none",
    index: agent_state.Index | None = None,
) -> Float[np.ndarray, "S A"]:
    """The expectation of a learner's direction at every agent state, action and return integrated out.

    SPG (Eq. 3):        P[s] π(a) (q(a) − v)
    NeuRD-CIX (Eq. 9):  P[s] (π(a) q(a) / β(a) − Σ_b π(b)² q(b) / β(b)),  β(a) = min(1, π(a) + η)

    with q of shifted, never positive, returns, less v where `baseline="value"`. `weights` are the expected
    number of visits ("realization", what sampled episodes give), "counterfactual", or "none".
    """
    checks.one_of("learner", learner, ("spg", "neurd", "neurd_cix"))
    checks.one_of("weights", weights, ("realization", "counterfactual", "none"))
    checks.one_of("baseline", baseline, ("none", "value"))
    checks.in_unit_interval("exploration", exploration)
    found = quantities(tree, policy, index)
    table = np.asarray(policy, np.float64)
    legal = tree.legal if index is None else index.legal
    values: np.ndarray = np.asarray(found.shifted_action_value)
    if baseline == "value":
        values = np.where(legal, values - np.sum(table * values, axis=1, keepdims=True), 0.0)
    if learner == "spg":
        direction = table * (values - np.sum(table * values, axis=1, keepdims=True))
    else:
        beta = np.minimum(1.0, table + (exploration if learner == "neurd_cix" else 0.0))
        # At π(a) = 0 and no exploration the limit of π / β is 1: the update of an action about to be tried.
        estimate = np.where(beta > 0, table / np.where(beta > 0, beta, 1.0), 1.0) * values
        direction = np.where(legal, estimate - np.sum(table * estimate, axis=1, keepdims=True), 0.0)
    if weights == "none":
        return direction
    visits = found.realization if weights == "realization" else found.counterfactual_realization
    return np.asarray(visits)[:, None] * direction


def check_policy(
    policy: Any, tree: World, index: agent_state.Index | None = None, *, stacks: bool = True
) -> None:
    """Raises a ValueError that names the first row of `policy` that is no distribution over legal actions.

    A stack of policies [K, S, A] is one too, unless `stacks` is False.
    """
    legal = tree.legal if index is None else index.legal
    array = np.asarray(policy)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"a policy must be an array of numbers, but is {type(policy).__name__}.")
    if array.ndim not in ((2, 3) if stacks else (2,)) or array.shape[-2:] != legal.shape:
        raise ValueError(f"policy must have the shape {legal.shape} of {tree.name}, but has {array.shape}.")
    complaints = (
        (np.any(~np.isfinite(array), axis=-1), "holds a number that is not finite"),
        (np.any(array < 0, axis=-1), "holds a negative probability"),
        (np.any((array != 0) & ~legal, axis=-1), "gives an illegal action a positive probability"),
        (np.abs(array.sum(axis=-1) - 1) > _TOLERANCE, "does not sum to 1"),
    )
    for bad, complaint in complaints:
        if np.any(bad):
            row = int(np.argwhere(bad)[0][-1])
            names = None
            if index is None and isinstance(tree, trees.Tree):
                names = tree.information_state_strings
            name = f"information state {row} ({names[row]!r})" if names else f"agent state {row}"
            values = array.reshape(-1, *legal.shape)[np.argwhere(bad.reshape(-1, len(legal)))[0][0], row]
            raise ValueError(f"the policy at {name} {complaint}: {values.tolist()}.")


_host_forms: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
_forms: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
_judges: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def _kept(cache: Any, tree: trees.Tree, index: agent_state.Index | None, make: Callable[[], Any]) -> Any:
    """What `make` has made for a tree and an index: made once."""
    known = cache.setdefault(tree, {})
    if id(index) not in known:
        # The index itself is kept, so that its identity cannot be taken over by another.
        known[id(index)] = (index, make())
    return known[id(index)][1]


def sequence_form_of(tree: trees.Tree, index: agent_state.Index | None = None) -> sequence_form.SequenceForm:
    """The sequence form of `tree` on the device, in float64; built once for every tree."""

    def make() -> sequence_form.SequenceForm:
        with jax.enable_x64(True):
            return jax.tree.map(jnp.asarray, _host_form_of(tree, index))

    return _kept(_forms, tree, index, make)


def _host_form_of(tree: trees.Tree, index: agent_state.Index | None) -> sequence_form.SequenceForm:
    states = None if index is None else index.state
    return _kept(_host_forms, tree, index, lambda: sequence_form.build(tree, states))


def _table(world: World, policy: Any, index: agent_state.Index | None = None) -> np.ndarray:
    """One policy, checked, in float64."""
    check_policy(policy, world, index, stacks=False)
    array = np.asarray(policy)
    if array.dtype == np.float64:
        return array
    array = array.astype(np.float64)
    return array / array.sum(axis=-1, keepdims=True)


def _evaluate(tree: trees.Tree, policy: Any, index: agent_state.Index | None) -> Any:
    """The `evaluation.Outcome`, as numpy, with a leading axis for a stack of policies."""
    legal = tree.legal if index is None else index.legal
    shape = np.shape(policy)
    if len(shape) not in (2, 3) or shape[-2:] != legal.shape:
        check_policy(policy, tree, index)
    with jax.enable_x64(True):
        numbers = np.asarray(_judges_of(tree, index)[len(shape) - 2](policy))
    if not np.all(numbers[..., 0]):
        check_policy(policy, tree, index)
    halves: Any = np.split(numbers[..., 1:], 2, axis=-1)
    return evaluation.Outcome(expected=halves[0], best=halves[1])


def _judged(form: sequence_form.SequenceForm, policy: Array) -> Float[Array, "_"]:
    """Whether `policy` is one (1 or 0), and its outcome: in one array, as each costs its own way back."""
    sound = _is_sound(form, policy)
    if policy.dtype != jnp.float64:
        policy = policy.astype(jnp.float64)
        policy = policy / jnp.sum(policy, axis=1, keepdims=True)
    found = evaluation.outcome(form, policy)
    return jnp.concatenate([sound.astype(jnp.float64)[None], found.expected, found.best])


_judge = jax.jit(_judged)
_judge_all = jax.jit(jax.vmap(_judged, in_axes=(None, 0)))
_SMALL = 100_000  # histories


def _judges_of(tree: trees.Tree, index: agent_state.Index | None) -> Any:
    """The compiled evaluations of one policy and of a stack.

    The form of a small tree is made part of the compiled function: passing its many arrays in would cost
    as much as the evaluation. That of a large tree would burden the compiler, and is passed in.
    """

    def make() -> Any:
        form = sequence_form_of(tree, index)
        if tree.num_histories > _SMALL:
            return functools.partial(_judge, form), functools.partial(_judge_all, form)
        one = functools.partial(_judged, form)
        return jax.jit(one), jax.jit(jax.vmap(one))

    return _kept(_judges, tree, index, make)


def _is_sound(form: sequence_form.SequenceForm, policy: Array) -> Array:
    """Whether the rows of `policy` are distributions over legal actions.

    Cheap, as it runs at every call: legal actions are looked at in the form's slots, which the evaluation
    reads anyway; what is left for illegal ones is the sum of the whole table.
    """
    sound = jnp.abs(jnp.sum(policy) - policy.shape[0]) <= _TOLERANCE * policy.shape[0]
    for agent, slots in zip(form.agents, evaluation.slots(form, policy), strict=True):
        sound &= jnp.all(slots >= 0)
        for level in evaluation.rectangles(agent, slots):
            for piece in level:
                sound &= jnp.all(jnp.abs(jnp.sum(piece, axis=1) - 1) <= _TOLERANCE)
    return sound


@functools.partial(jax.jit, static_argnames="agent")
def _respond(form: sequence_form.SequenceForm, policy: Array, agent: int) -> tuple[Array, Array | None]:
    """The best response's value, and its action values as a table with only the agent's entries filled."""
    plans = evaluation.profile(form, evaluation.slots(form, policy)).plans
    found = evaluation.best_response(form, evaluation.rewards(form, plans, agent), agent)
    if form.slot is None:
        return found.value, None
    slots = [jnp.zeros(other.entry.shape, policy.dtype) for other in form.agents]
    slots[agent] = evaluation.flat(found.action_values, policy)
    return found.value, evaluation.table(form, slots)
