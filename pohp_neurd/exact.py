"""Exact quantities of a finite process under a policy: nothing sampled, everything in float64.

Names and equations of Morrill et al. (2022), Section 2.1: reach P[h], realization P[s], belief ξ_s(h), value
v_s, action value q_s(a), advantage ρ_s(a); the expectation of every learner's direction; best responses and
NashConv. A policy is an array [S, A] in the order of the tree's information states, or of the agent states of
a graph. Best responses are always over all that an agent has seen and done.
"""

import functools
import itertools
import weakref
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import tqdm
from jax import Array
from jaxtyping import Float

from pohp_neurd import checks, types
from pohp_neurd.finite import evaluation, graph, sequence_form
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


def nash_conv(tree: World, policy: Policy) -> float | Float[np.ndarray, "K"]:
    """NashConv of `policy`, or of each of a stack of policies [K, S, A].

    On a graph the policy is that of agents who may forget; responders remember everything.

    >>> from pohp_neurd.games import matrix_game
    >>> game = matrix_game.zero_sum(matrix_game.BIASED_ROCK_PAPER_SCISSORS)
    >>> nash_conv(game, np.array([[0.25, 0.5, 0.25], [0.25, 0.5, 0.25]]))
    0.0
    """
    if isinstance(tree, graph.Graph):
        return float(np.sum(best_response_values(tree, policy) - expected_returns(tree, policy)))
    found = _evaluate(tree, policy)
    gains = np.sum(found.best - found.expected, axis=-1)
    return float(gains) if gains.ndim == 0 else gains


def exploitability(tree: World, policy: Policy) -> Any:
    """NashConv / 2: what an opponent wins on average; defined for two-player zero-sum games."""
    if tree.num_agents != 2 or np.ptp(tree.final_returns.sum(axis=1)) > 1e-9:
        raise ValueError(
            f"exploitability is defined for two-player zero-sum games, which {tree.name} is not."
        )
    return nash_conv(tree, policy) / 2


def expected_returns(tree: World, policy: Policy) -> np.ndarray:
    """Every agent's expected return [P], or [K, P] for a stack of policies."""
    if isinstance(tree, graph.Graph):
        return tree.expected_returns(_table(tree, policy))
    return _evaluate(tree, policy).expected


def best_response_values(tree: World, policy: Policy) -> np.ndarray:
    """What every agent would get by a best response [P], or [K, P] for a stack of policies."""
    if isinstance(tree, graph.Graph):
        return np.array([response.value for response in responses(tree, policy)])
    return _evaluate(tree, policy).best


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


def best_response(tree: trees.Tree, policy: Policy, agent: int) -> BestResponse:
    """The best response of one agent to the others' part of `policy`: its value, and how it acts."""
    checks.index("agent", agent, tree.num_agents)
    form, table = sequence_form_of(tree), _table(tree, policy)
    with jax.enable_x64(True):
        value, action_values = _respond(form, table, agent)
    if form.slot is None:
        return BestResponse(float(value), None)
    best, rows = np.array(table), tree.states_of(agent)
    values = np.where(tree.legal[rows], np.asarray(action_values)[rows], -np.inf)
    best[rows] = np.eye(tree.num_actions)[np.argmax(values, axis=1)]
    return BestResponse(float(value), best)


class Quantities(NamedTuple):
    """What is true of every history (or node of a graph) and every agent state under a policy."""

    reach: Float[np.ndarray, "N"]
    """P[h]."""
    realization: Float[np.ndarray, "S"]
    """P[s]: the expected number of visits, which without absent-mindedness is a probability."""
    counterfactual_realization: Float[np.ndarray, "S"]
    """P[s] as if the state's own agent had done all it could to come here."""
    belief: Float[np.ndarray, "N"]
    """ξ_s(h) at decisions, 0 elsewhere. Where s is never reached: the belief were its agent to try, or
    uniform if even that is in vain; so all values are finite."""
    history_value: Float[np.ndarray, "N P"]
    """Every agent's expected return from each history, its own reward not included."""
    value: Float[np.ndarray, "S"]
    """v_s, of the state's own agent."""
    action_value: Float[np.ndarray, "S A"]
    """q_s(a); 0 at illegal actions, as below."""
    advantage: Float[np.ndarray, "S A"]
    """ρ_s(a) = q_s(a) − v_s."""
    shifted_action_value: Float[np.ndarray, "S A"]
    """q_s(a) of the rewards that are shifted to be never positive, which is what learners see."""


class _Edges(NamedTuple):
    """A tree or a graph as edges; the rows that they join have the end of the game at their end."""

    player: np.ndarray
    """Of each row."""
    levels: list[slice]
    """The edges of one level after the other, from the root on."""
    source: np.ndarray
    child: np.ndarray
    action: np.ndarray
    chance: np.ndarray
    rewards: np.ndarray


def _edges_of_tree(tree: trees.Tree) -> _Edges:
    return _Edges(
        player=tree.player,
        levels=[slice(start - 1, stop - 1) for start, stop in itertools.pairwise(tree.levels[1:])],
        source=tree.parent[1:],
        child=np.arange(1, tree.num_histories),
        action=tree.incoming_action[1:],
        chance=tree.chance[1:],
        rewards=tree.rewards[1:],
    )


def _edges_of_graph(world: graph.Graph) -> _Edges:
    return _Edges(
        player=np.append(world.player, trees.TERMINAL),
        levels=[edges for _, edges in world.by_level()],
        source=world.source,
        child=world.child,
        action=world.action,
        chance=world.chance,
        rewards=world.rewards,
    )


def quantities(world: World, policy: Policy) -> Quantities:
    """Reach, beliefs, values and advantages of every history (or node of a graph) and every agent state.

    The equations of Section 2.1 as they stand, imperfect recall and absent-mindedness included: one sweep
    down the levels for reach, one up for values, sums over agent states.
    """
    table = _table(world, policy)
    state = world.agent_state if isinstance(world, graph.Graph) else world.information_state
    edges = _edges_of_graph(world) if isinstance(world, graph.Graph) else _edges_of_tree(world)
    player, source, child = edges.player, edges.source, edges.child
    # The edges by which an agent acts: who it is, and the places in the policy.
    acts = np.flatnonzero(player[source] >= 0)
    agent, row, action = player[source[acts]], state[source[acts]], edges.action[acts]
    probability = edges.chance.copy()
    probability[acts] = table[row, action]
    others = np.repeat(probability[:, None], world.num_agents, axis=1)
    others[acts, agent] = 1.0

    reach, tried = np.zeros(len(player)), np.zeros((len(player), world.num_agents))
    reach[0] = tried[0] = 1.0
    for here in edges.levels:
        np.add.at(reach, child[here], reach[source[here]] * probability[here])
        np.add.at(tried, child[here], tried[source[here]] * others[here])
    values = np.zeros((len(player), world.num_agents))
    for here in reversed(edges.levels):
        worth = probability[here, None] * (edges.rewards[here] + values[child[here]])
        np.add.at(values, source[here], worth)

    decisions = np.flatnonzero(player >= 0)
    at, reached, attempted = state[decisions], reach[decisions], tried[decisions, player[decisions]]

    def per_state(numbers: np.ndarray) -> np.ndarray:
        return np.bincount(at, numbers, len(table))

    realization, counterfactual = per_state(reached), per_state(attempted)
    weight = np.where(realization[at] > 0, reached, np.where(counterfactual[at] > 0, attempted, 1.0))
    belief = np.zeros(len(player))
    belief[decisions] = weight / per_state(weight)[at]

    # q_s(a): over all edges by the action a of all histories of s.
    worth = edges.rewards[acts, agent] + values[child[acts], agent]
    shifted = worth - world.best_return_to_go[source[acts], agent]

    def per_action(numbers: np.ndarray) -> np.ndarray:
        pair = row.astype(np.int64) * table.shape[1] + action
        return np.bincount(pair, belief[source[acts]] * numbers, table.size).reshape(table.shape)

    action_value = per_action(worth)
    value = np.sum(table * action_value, axis=1)
    return Quantities(
        reach=reach[: len(state)],
        realization=realization,
        counterfactual_realization=counterfactual,
        belief=belief[: len(state)],
        history_value=values[: len(state)],
        value=value,
        action_value=action_value,
        advantage=np.where(per_action(np.ones(len(acts))) > 0, action_value - value[:, None], 0.0),
        shifted_action_value=per_action(shifted),
    )


def expected_direction(
    tree: World,
    policy: Policy,
    learner: str,
    exploration: float = 0.0,
    *,
    weights: str = "realization",
    baseline: str = "none",
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
    found = quantities(tree, policy)
    table = np.asarray(policy, np.float64)
    legal = tree.legal
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


def check_policy(policy: Any, tree: World, *, stacks: bool = True) -> None:
    """Raises a ValueError that names the first row of `policy` that is no distribution over legal actions.

    A stack of policies [K, S, A] is one too, unless `stacks` is False.
    """
    legal = tree.legal
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
            names = tree.information_state_strings if isinstance(tree, trees.Tree) else None
            name = f"information state {row} ({names[row]!r})" if names else f"agent state {row}"
            values = array.reshape(-1, *legal.shape)[np.argwhere(bad.reshape(-1, len(legal)))[0][0], row]
            raise ValueError(f"the policy at {name} {complaint}: {values.tolist()}.")


_kept: weakref.WeakKeyDictionary[trees.Tree, dict[str, Any]] = weakref.WeakKeyDictionary()


def sequence_form_of(tree: trees.Tree) -> sequence_form.SequenceForm:
    """The sequence form of `tree` on the device, in float64; built once for every tree."""
    kept = _kept.setdefault(tree, {})
    if "form" not in kept:
        with jax.enable_x64(True):
            kept["form"] = jax.tree.map(jnp.asarray, sequence_form.build(tree))
    return kept["form"]


def _table(world: World, policy: Any) -> np.ndarray:
    """One policy, checked, in float64."""
    check_policy(policy, world, stacks=False)
    array = np.asarray(policy)
    if array.dtype == np.float64:
        return array
    array = array.astype(np.float64)
    return array / array.sum(axis=-1, keepdims=True)


def _evaluate(tree: trees.Tree, policy: Any) -> Any:
    """The `evaluation.Outcome`, as numpy, with a leading axis for a stack of policies."""
    legal = tree.legal
    shape = np.shape(policy)
    if len(shape) not in (2, 3) or shape[-2:] != legal.shape:
        check_policy(policy, tree)
    with jax.enable_x64(True):
        numbers = np.asarray(_judges_of(tree)[len(shape) - 2](policy))
    if not np.all(numbers[..., 0]):
        check_policy(policy, tree)
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


def _judges_of(tree: trees.Tree) -> Any:
    """The compiled evaluations of one policy and of a stack; made once for every tree.

    The form of a small tree is made part of the compiled function: passing its many arrays in would cost
    as much as the evaluation. That of a large tree would burden the compiler, and is passed in.
    """
    form, kept = sequence_form_of(tree), _kept[tree]
    if "judges" not in kept:
        if tree.num_histories > _SMALL:
            kept["judges"] = functools.partial(_judge, form), functools.partial(_judge_all, form)
        else:
            one = functools.partial(_judged, form)
            kept["judges"] = jax.jit(one), jax.jit(jax.vmap(one))
    return kept["judges"]


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
    acting = evaluation.profile(form, evaluation.slots(form, policy))
    found = evaluation.best_response(form, evaluation.rewards(form, acting, agent), agent)
    if form.slot is None:
        return found.value, None
    slots = [jnp.zeros(other.entry.shape, policy.dtype) for other in form.agents]
    slots[agent] = evaluation.flat(found.action_values, policy.dtype)
    return found.value, evaluation.table(form, slots)
