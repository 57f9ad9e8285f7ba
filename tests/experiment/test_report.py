"""A run as data for a page: gains that add up to NashConv, names, curves, and what is left out."""

import html.parser
import json
import re

import numpy as np
import packing
import pytest

from pohp_neurd import exact, openspiel
from pohp_neurd.experiment import bandit, configs, game, game_config, report, single_agent
from pohp_neurd.openspiel import compile as compiling
from pohp_neurd.openspiel import saved
from pohp_neurd.results import report as pages
from pohp_neurd.results import table

SMALL = {"game": "kuhn_poker", "episodes": 4096, "batch_size": 256}


def random_policy(tree, seed):
    weights = np.random.default_rng(seed).exponential(size=tree.legal.shape) ** 3 * tree.legal
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    "name",
    [
        "kuhn_poker",
        "kuhn_poker(players=3)",
        "goofspiel(num_cards=3,imp_info=True,points_order=descending)",
        pytest.param("leduc_poker", marks=pytest.mark.thorough),
    ],
)
def test_gains_add_up_to_nash_conv(name):
    tree = openspiel.compile_game(name)
    pure = np.eye(tree.num_actions)[np.argmax(tree.legal, axis=1)]  # leaves many states unreached
    for policy in (random_policy(tree, 0), random_policy(tree, 1), exact.uniform(tree), pure):
        gained, _ = report.gains(tree, policy)
        assert np.sum(gained) == pytest.approx(exact.nash_conv(tree, policy), abs=1e-10)
        owed = exact.best_response_values(tree, policy) - exact.expected_returns(tree, policy)
        own = [np.sum(gained[tree.states_of(agent)]) for agent in range(tree.num_agents)]
        np.testing.assert_allclose(own, owed, atol=1e-10)


def test_the_gain_at_a_state_is_what_one_change_of_plan_is_worth():
    """The policy until the state, the best response elsewhere; at the state the one or the other."""
    tree = openspiel.compile_game("kuhn_poker(players=3)")
    policy = random_policy(tree, 2)
    gained, answers = report.gains(tree, policy)
    for state in range(tree.num_information_states):
        agent = tree.state_player[state]
        row, before = np.flatnonzero(tree.information_state == state)[0], []
        while (row := tree.previous_decision[row, agent]) >= 0:
            before.append(tree.information_state[row])
        plan = np.where((tree.state_player == agent)[:, None], answers, policy)
        plan[before] = policy[before]
        changed = plan.copy()
        changed[state] = policy[state]
        worth = [exact.expected_returns(tree, each)[agent] for each in (plan, changed)]
        assert gained[state] == pytest.approx(worth[0] - worth[1], abs=1e-12)
    assert np.max(gained) > 0.01


def test_an_equilibrium_leaves_nothing_to_gain():
    tree = openspiel.compile_game("kuhn_poker")
    policy = np.zeros((12, 2))
    bet = {"0": 0, "0pb": 0, "1": 0, "1pb": 1 / 3, "2": 0, "2pb": 1}  # Kuhn (1950), with α = 0
    bet |= {"0p": 1 / 3, "0b": 0, "1p": 0, "1b": 1 / 3, "2p": 1, "2b": 1}
    for row, name in enumerate(tree.information_state_strings):
        policy[row] = [1 - bet[name], bet[name]]
    assert np.max(report.gains(tree, policy)[0]) < 1e-12


@pytest.mark.filterwarnings("ignore:.*no information-state strings")
def test_without_perfect_recall_gains_are_left_out():
    tree = openspiel.compile_game("deep_sea(size=3)")
    found = report.judged(tree, exact.uniform(tree), report.choices(tree))
    assert "has no perfect recall" in found["left_out"]
    assert "gain" not in found
    assert found["nash_conv"] == pytest.approx(exact.nash_conv(tree, exact.uniform(tree)), abs=1e-12)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "kuhn"
    game.run(game_config.Config(**SMALL), folder)
    return folder


def gathered(folder, **more):
    return report.gather(configs.Report(checkpoint=str(folder), **more))


def test_a_run_as_data(run):
    data = json.loads(json.dumps(gathered(run), allow_nan=False))
    (shown,) = data["runs"]
    rows = table.read(run / "metrics.csv")
    assert shown["columns"] == list(rows[0])
    np.testing.assert_array_equal(packing.unpacked(shown["metrics"]), [list(row.values()) for row in rows])
    assert shown["config"]["game"] == "kuhn_poker"
    tree = openspiel.compile_game("kuhn_poker")
    names = [each["which"].split()[0] for each in data["policies"]]  # one of them may be the best, too
    assert names[:2] == ["current", "average"]
    for each in data["policies"]:
        policy = saved.table(saved.load(run), tree, each["which"].split()[0])
        assert each["nash_conv"] == pytest.approx(exact.nash_conv(tree, policy), abs=1e-12)
        np.testing.assert_allclose(each["returns"], exact.expected_returns(tree, policy), atol=1e-12)
        assert np.sum(packing.unpacked(each["gain"])) == pytest.approx(each["nash_conv"], abs=1e-10)
        np.testing.assert_allclose(packing.unpacked(each["probability"]), policy.reshape(-1), atol=1e-7)
        values = exact.quantities(tree, policy)
        np.testing.assert_allclose(
            packing.unpacked(each["action_value"]), values.action_value.reshape(-1), atol=1e-6
        )
        np.testing.assert_array_equal(packing.unpacked(each["reached"]), values.realization)


def test_names_and_pictures_are_openspiels():
    tree = openspiel.compile_game("dark_hex(board_size=2)")
    names, name, pictures = report.names(tree)
    first = compiling.game_of(tree)
    rng = np.random.default_rng(0)
    for _ in range(50):
        row, state = 0, first.new_initial_state()
        while not state.is_terminal():
            player = state.current_player()
            assert pictures[tree.information_state[row]] == state.observation_string(player)
            row = tree.first_child[row] + rng.integers(tree.num_children[row])
            action = int(tree.incoming_action[row])
            assert names[name[row]] == state.action_to_string(player, action)
            state.apply_action(action)


def test_choices_follow_the_children_of_any_history():
    tree = openspiel.compile_game("leduc_poker")
    state, action = report.choices(tree)
    for row in np.flatnonzero(tree.information_state >= 0)[::7]:
        children = tree.first_child[row] + np.arange(tree.num_children[row])
        np.testing.assert_array_equal(
            action[state == tree.information_state[row]], tree.incoming_action[children]
        )


@pytest.mark.slow
def test_another_run_beside_it(run, tmp_path):
    game.run(game_config.Config(**SMALL, seed=1), tmp_path / "other")
    data = gathered(run, against=str(tmp_path / "other"))
    assert [each["run"] for each in data["policies"]] == sorted(each["run"] for each in data["policies"])
    assert {each["run"] for each in data["policies"]} == {"kuhn", "other"}


@pytest.mark.slow
def test_agents_that_forget_are_judged_on_the_whole_game(tmp_path):
    settings = {"game": "leduc_poker", "play": "graph", "agent_state": "window:1"}
    game.run(game_config.Config(**settings, episodes=512, batch_size=256), tmp_path / "run")
    kept = saved.load(tmp_path / "run")
    (first, *_) = gathered(tmp_path / "run")["policies"]
    assert first["which"].startswith("current")
    expected = exact.nash_conv(kept.world, saved.table(kept, kept.world, "current"))
    assert first["nash_conv"] == pytest.approx(expected, abs=1e-9)
    assert np.sum(packing.unpacked(first["gain"])) == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
def test_runs_that_cannot_be_shown(run, tmp_path):
    game.run(game_config.Config(**{**SMALL, "game": "kuhn_poker(players=3)"}), tmp_path / "three")
    with pytest.raises(ValueError, match=r"is of kuhn_poker, but .* is of kuhn_poker\(players=3\)\."):
        gathered(run, against=str(tmp_path / "three"))
    bandit.run(configs.Bandit(horizon=10, seeds=2), tmp_path / "bandit")
    with pytest.raises(ValueError, match="must be a run of train_game or train_single_agent"):
        gathered(tmp_path / "bandit")
    with pytest.raises(ValueError, match=r"it has no config\.json"):
        gathered(tmp_path)


def test_what_cannot_be_known_is_left_out(run):
    data = gathered(run, max_histories=10)
    assert "no states, values or best-response gains" in data["left_out"]
    assert "has more than 10 histories" in data["left_out"]
    assert "policies" not in data


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("environment", "sizes", "actions"), [("catch", (9, 5, 5), 3), ("cart_pole", (41, 41), 2)]
)
def test_maps_of_single_agents(environment, sizes, actions, tmp_path):
    config = configs.SingleAgent(environment=environment, num_steps=200, interval=100, seeds=2, width=8)
    single_agent.run(config, tmp_path / "run")
    data = json.loads(json.dumps(gathered(tmp_path / "run")))
    (found,) = data["maps"]
    assert tuple(found["sizes"]) == sizes
    probability = packing.unpacked(found["probability"])
    assert probability.shape == (2, np.prod(sizes), actions)
    np.testing.assert_allclose(probability.sum(axis=-1), 1, atol=1e-5)
    assert not np.allclose(probability[0], probability[1])  # each seed has its own


@pytest.mark.slow
def test_a_game_with_too_many_histories_is_shown_by_agent_states(tmp_path):
    settings = {"game": "dark_hex(board_size=2)", "play": "graph", "agent_state": "observation"}
    game.run(game_config.Config(**settings, episodes=512, batch_size=256), tmp_path / "run")
    kept, data = saved.load(tmp_path / "run"), gathered(tmp_path / "run", max_histories=10)
    policy, world = saved.table(kept, kept.world, "current"), kept.world
    first = data["policies"][0]
    assert "remembers more than these agents" in first["left_out"]
    assert first["nash_conv"] == exact.nash_conv(world, policy)
    np.testing.assert_allclose(packing.unpacked(first["probability"]), policy[world.legal], atol=1e-7)
    values = exact.quantities(world, policy).action_value[world.legal]
    np.testing.assert_allclose(packing.unpacked(first["action_value"]), values, atol=1e-6)
    _, strings, steps = report.witnesses(world)
    assert steps[: world.legal[0].sum()] == ["a1", "b1", "a2", "b2"]
    free = [string.count(".") for string in strings]
    assert free == world.legal.sum(axis=1).tolist()  # a player may try whatever looks free


class _Balanced(html.parser.HTMLParser):
    """Raises unless every element that must be closed is, in order."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_asks_nobody_and_holds_any_text(run):
    data = gathered(run)
    data["runs"][0]["name"] = "</script><script>alert(1)</script><!-- style -->"
    text = pages.page(data)
    parser = _Balanced()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    (held,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert json.loads(held) == json.loads(json.dumps(data))
    addresses = set(re.findall(r"https?://[^\"'\s]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not an address
