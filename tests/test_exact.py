"""Exact quantities against plain recursion, closed forms, and each other."""

import history_oracle
import jax
import numpy as np
import pytest
from pohp_neurd.games import matrix_game

from pohp_neurd import agent_state, directions, exact, learners, openspiel
from pohp_neurd.finite import tree as trees
from pohp_neurd.finite import tree_builder

TREES = {
    "kuhn": lambda: openspiel.compile_game("kuhn_poker"),
    "three-player kuhn": lambda: openspiel.compile_game("kuhn_poker(players=3)"),
    "goofspiel": lambda: openspiel.compile_game("goofspiel(num_cards=3,imp_info=True)"),
    "prisoners": lambda: openspiel.compile_game("matrix_pd"),
    "bandit": lambda: matrix_game.bandit([0.1, 0.5, 0.9]),
    "intermediate rewards": lambda: two_rounds(),
    "silent agent": lambda: silent_agent(),
}


def two_rounds():
    """One agent, two rounds, a chance move between them, rewards all along the way."""

    def describe(path):
        rewards = [1.0 if len(path) in (1, 3) and path[-1] == 1 else 0.0]
        if len(path) == 3:
            return tree_builder.Node(trees.TERMINAL, [rewards[0] - 2.0 * path[0]])
        if len(path) == 1:
            return tree_builder.Node(trees.CHANCE, rewards, None, (0, 1, 2), (0.5, 0.5, 0.0))
        return tree_builder.Node(0, rewards, path, (0, 1))

    return tree_builder.grow(
        (), describe, lambda path, action: (*path, action), num_agents=1, num_actions=2, name="two rounds"
    )


def silent_agent():
    """Agent 1 never acts, agent 2 only sometimes; one state has a single legal action."""

    def describe(path):
        if len(path) == 2 or path == (0,):
            return tree_builder.Node(trees.TERMINAL, [1.0 * len(path), -2.0, sum(path)])
        if len(path) == 1:
            return tree_builder.Node(2, [0.0] * 3, "second", (0, 1) if path == (1,) else (1,))
        return tree_builder.Node(0, [0.0] * 3, "first", (0, 1))

    return tree_builder.grow(
        (), describe, lambda path, action: (*path, action), num_agents=3, num_actions=2, name="silent"
    )


def random_policy(legal, seed, *, zeros=False):
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=legal.shape) * legal
    if zeros:
        kept = weights * (rng.random(weights.shape) < 0.4)
        weights = np.where(kept.sum(axis=1, keepdims=True) > 0, kept, weights)
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.slow) if name in ("goofspiel", "prisoners") else name
        for name in TREES
    ],
)
def tree(request):
    return TREES[request.param]()


def assert_equals_oracle(tree, policy, state, found):
    np.testing.assert_allclose(found.reach, history_oracle.reach(tree, policy, state), atol=1e-12)
    np.testing.assert_allclose(
        found.history_value[0], history_oracle.value(tree, policy, state, 0), atol=1e-12
    )
    for number in range(len(policy)):
        realization, belief, values = history_oracle.state_quantities(tree, policy, state, number)
        assert found.realization[number] == pytest.approx(realization, abs=1e-12)
        for row, probability in belief.items():
            assert found.belief[row] == pytest.approx(probability, abs=1e-12)
        if not values:
            continue
        mean = sum(policy[number, action] * value for action, value in values.items())
        assert found.value[number] == pytest.approx(mean, abs=1e-12)
        for action, value in values.items():
            assert found.action_value[number, action] == pytest.approx(value, abs=1e-12)
            assert found.advantage[number, action] == pytest.approx(value - mean, abs=1e-12)


def test_quantities_equal_recursion(tree):
    policy = random_policy(tree.legal, 0)
    assert_equals_oracle(tree, policy, tree.information_state, exact.quantities(tree, policy))


def test_nash_conv_on_the_host_is_the_compiled_one(tree, count_compilations):
    policy = random_policy(tree.legal, 6, zeros=True)
    with count_compilations() as compiled:
        found = exact.nash_conv(tree, policy, compiled=False)
    assert compiled.count == 0
    assert found == pytest.approx(exact.nash_conv(tree, policy), abs=1e-12)


def test_counterfactual_realization_leaves_out_ones_own_actions(tree):
    policy = random_policy(tree.legal, 5)
    expected = np.zeros(len(policy))
    for row in np.flatnonzero(tree.player >= 0):
        weight, below = 1.0, row
        while below > 0:
            above = tree.parent[below]
            if tree.player[above] == trees.CHANCE:
                weight *= tree.chance[below]
            elif tree.player[above] != tree.player[row]:
                weight *= policy[tree.information_state[above], tree.incoming_action[below]]
            below = above
        expected[tree.information_state[row]] += weight
    found = exact.quantities(tree, policy).counterfactual_realization
    np.testing.assert_allclose(found, expected, atol=1e-12)


def forget_the_card(tree):
    """Features that show the card on an agent's first turn only."""
    later = np.array([name.endswith("pb") for name in tree.information_state_strings])
    return np.where(later[:, None], 0.0, tree.features).astype(np.float32)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("blur", "absent_minded"),
    [(forget_the_card, False), (lambda tree: tree.features[:, :2], True)],
    ids=["forgets its card", "knows only who it is"],
)
def test_quantities_of_an_imperfect_recall_agent_equal_recursion(blur, absent_minded):
    tree = openspiel.compile_game("kuhn_poker")
    blurred = trees.Tree(**{**vars_of(tree), "features": blur(tree)})
    memory = agent_state.last_observation(blurred)
    assert not agent_state.has_perfect_recall(blurred, memory)
    assert bool(agent_state.is_absent_minded(blurred, memory)) == absent_minded
    index = agent_state.index(blurred, memory)
    policy = random_policy(index.legal, 1)
    assert_equals_oracle(blurred, policy, index.state, exact.quantities(blurred, policy, index))
    for agent in range(2):
        best = history_oracle.best_response_value(blurred, policy, index.state, agent)
        assert exact.best_response(blurred, policy, agent, index).value == pytest.approx(best, abs=1e-12)


def vars_of(tree):
    return {name: getattr(tree, name) for name in trees.Tree.__dataclass_fields__}


def test_beliefs_sum_to_one(tree):
    for zeros in (False, True):
        found = exact.quantities(tree, random_policy(tree.legal, 2, zeros=zeros))
        sums = np.bincount(
            tree.information_state[tree.information_state >= 0], found.belief[tree.information_state >= 0]
        )
        np.testing.assert_allclose(sums, 1.0, atol=1e-12)
        assert all(np.all(np.isfinite(array)) for array in found)


def test_unreached_states_keep_the_belief_of_an_agent_that_tries():
    tree = openspiel.compile_game("kuhn_poker")
    rows = {name: i for i, name in enumerate(tree.information_state_strings)}
    policy = exact.uniform(tree)
    for name in "012":
        policy[rows[name]] = [0.0, 1.0]  # always bets: "pass, bet" is never seen again
    found = exact.quantities(tree, policy)
    assert found.realization[rows["0pb"]] == 0
    np.testing.assert_allclose(found.belief[tree.information_state == rows["0pb"]], 0.5)


@pytest.mark.thorough
def test_expected_returns_and_best_responses_equal_recursion(tree):
    policy = random_policy(tree.legal, 3, zeros=True)
    state = tree.information_state
    expected = tree.rewards[0] + history_oracle.value(tree, policy, state, 0)
    np.testing.assert_allclose(exact.expected_returns(tree, policy), expected, atol=1e-12)
    for agent in range(tree.num_agents):
        best = history_oracle.best_response_value(tree, policy, state, agent)
        response = exact.best_response(tree, policy, agent)
        assert response.value == pytest.approx(best, abs=1e-12)
        # The response's own table must earn what it claims.
        assert exact.expected_returns(tree, response.policy)[agent] == pytest.approx(best, abs=1e-12)


def test_best_response_to_a_repeated_game_without_information_states():
    """Observation strings forget; the best response does not."""
    with pytest.warns(UserWarning, match="no information-state strings"):
        tree = openspiel.compile_game("repeated_game(stage_game=matrix_pd(),num_repetitions=3)")
    assert np.any(tree.rewards[tree.player != trees.TERMINAL])
    for seed in range(5):
        policy = random_policy(tree.legal, seed)
        for agent in range(2):
            best = history_oracle.best_response_value(tree, policy, tree.information_state, agent)
            assert exact.best_response_values(tree, policy)[agent] == pytest.approx(best, abs=1e-12)
        expected = history_oracle.value(tree, policy, tree.information_state, 0)
        np.testing.assert_allclose(exact.expected_returns(tree, policy), expected, atol=1e-12)


@pytest.mark.thorough
def test_agents_of_any_memory_are_judged_over_real_information_states():
    tree = openspiel.compile_game("kuhn_poker(players=3)")
    for memory in (
        agent_state.last_observation(tree),
        agent_state.window(tree, 2),
        agent_state.timed(agent_state.last_observation(tree)),
    ):
        index = agent_state.index(tree, memory)
        policy = random_policy(index.legal, 4)
        spread = np.zeros(tree.legal.shape)
        spread[tree.information_state[index.state >= 0]] = policy[index.state[index.state >= 0]]
        assert exact.nash_conv(tree, policy, index) == pytest.approx(exact.nash_conv(tree, spread), abs=1e-9)


def test_expected_neurd_is_the_realization_weighted_advantage(tree):
    policy = random_policy(tree.legal, 6)
    found = exact.quantities(tree, policy)
    direction = exact.expected_direction(tree, policy, "neurd")
    np.testing.assert_allclose(direction, found.realization[:, None] * found.advantage, atol=1e-12)
    spg = exact.expected_direction(tree, policy, "spg")
    np.testing.assert_allclose(spg, policy * found.realization[:, None] * found.advantage, atol=1e-12)
    counterfactual = exact.expected_direction(tree, policy, "neurd", weights="counterfactual")
    np.testing.assert_allclose(
        counterfactual, found.counterfactual_realization[:, None] * found.advantage, atol=1e-12
    )


@pytest.mark.parametrize("exploration", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("baseline", ["none", "value"])
def test_expected_directions_equal_enumeration_of_trajectories(exploration, baseline):
    """Every trajectory of three-player Kuhn: its probability times the learner's direction at each step."""
    tree = openspiel.compile_game("kuhn_poker(players=3)")
    policy = random_policy(tree.legal, 7)
    found = exact.quantities(tree, policy)
    values = np.sum(policy * found.shifted_action_value, axis=1)
    totals = {name: np.zeros_like(policy) for name in ("spg", "neurd_cix")}
    directions_of = {"spg": directions.spg_direction, "neurd_cix": directions.neurd_cix_direction}
    returns = tree.shifted_rewards.copy()
    for start, stop in zip(tree.levels[1:-1], tree.levels[2:], strict=True):
        returns[start:stop] += returns[tree.parent[start:stop]]
    batch: dict[str, list] = {"weight": [], "state": [], "action": [], "return": []}
    for end in np.flatnonzero(tree.player == trees.TERMINAL):
        row = end
        while tree.parent[row] >= 0:
            above = tree.parent[row]
            if tree.player[above] >= 0:
                agent = tree.player[above]
                batch["weight"].append(found.reach[end])
                batch["state"].append(tree.information_state[above])
                batch["action"].append(tree.incoming_action[row])
                batch["return"].append(returns[end, agent] - returns[above, agent])
            row = above
    with jax.enable_x64(True):
        states, actions = np.array(batch["state"]), np.array(batch["action"])
        decisions = learners.Decision(
            agent_state=states,
            legal=tree.legal[states],
            action=actions,
            probability=policy[states, actions],
            return_=np.array(batch["return"]),
            baseline=values[states] if baseline == "value" else np.zeros(len(states)),
            weight=np.ones(len(states)),
            target=np.zeros(len(states)),
        )
        for name, function in directions_of.items():
            one = lambda p, d, f=function: f(p, d, exploration)  # noqa: E731
            each = np.asarray(jax.vmap(one)(policy[states], decisions))
            np.add.at(totals[name], states, np.array(batch["weight"])[:, None] * each)
    for name, total in totals.items():
        direction = exact.expected_direction(tree, policy, name, exploration, baseline=baseline)
        np.testing.assert_allclose(direction, total, atol=1e-12)


def test_exploitability():
    tree = openspiel.compile_game("kuhn_poker")
    assert exact.exploitability(tree, exact.uniform(tree)) == pytest.approx(11 / 24, abs=1e-12)
    prisoners = openspiel.compile_game("matrix_pd")
    with pytest.raises(ValueError, match=r"two-player zero-sum games, which .*matrix_pd"):
        exact.exploitability(prisoners, exact.uniform(prisoners))


def test_bad_arguments():
    tree = openspiel.compile_game("kuhn_poker")
    policy = exact.uniform(tree)
    with pytest.raises(ValueError, match="agent must be one of 0 to 1, but is 2"):
        exact.best_response(tree, policy, 2)
    with pytest.raises(ValueError, match=r"exploration must lie in \[0, 1\]"):
        exact.expected_direction(tree, policy, "neurd_cix", 1.5)
    with pytest.raises(ValueError, match="learner must be one of spg, neurd, neurd_cix"):
        exact.expected_direction(tree, policy, "ppo")
