"""Runs on graphs of agent states: what is built, what is saved, how they go on, how they are evaluated."""

import json

import numpy as np
import pyspiel
import pytest

from pohp_neurd import exact, openspiel
from pohp_neurd.experiment import configs, evaluation, game, game_config, schema
from pohp_neurd.openspiel import compile as compiling
from pohp_neurd.openspiel import saved
from pohp_neurd.results import records

SMALL = {"game": "kuhn_poker", "play": "graph", "hidden_layers": (8,)}
SAMPLED = {**SMALL, "episodes": 4096, "batch_size": 256, "eval_every": 1024}
EXPECTED = {**SMALL, "update": "expected", "iterations": 40, "eval_every": 10}
KINDS = {
    "table": SAMPLED,
    "table, expected": {**EXPECTED, "game": "leduc_poker"},
    "network": {**SAMPLED, "policy": "neural"},
    "network, expected": {**EXPECTED, "policy": "neural"},
    "window": {**SAMPLED, "agent_state": "window:2", "policy": "neural", "shared": False},
}


def rows_of(folder):
    rows = records.read_csv(folder / "metrics.csv")
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "kind",
    [each if each in ("table", "network") else pytest.param(each, marks=pytest.mark.slow) for each in KINDS],
)
def test_a_run_on_a_graph_is_saved_resumed_and_judged_as_openspiel_judges_it(kind, tmp_path):
    config = game_config.Config(**KINDS[kind])
    whole = game.run(config, tmp_path / "whole")
    game.run(config, tmp_path / "parts", stop_after=7 if config.update == "sampled" else 17)
    parts = game.run(config, tmp_path / "parts", resume=True)
    assert rows_of(tmp_path / "parts") == rows_of(tmp_path / "whole")
    assert parts["nash_conv"] == whole["nash_conv"]

    mine = saved.load(tmp_path / "whole")
    assert mine.usual == "best"
    names = {"current": "nash_conv", "average": "nash_conv_average", "best": "nash_conv_best"}
    for which in names if config.policy == "neural" else ("current", "best"):
        # The tree's NashConv, of answers that the policy gives at OpenSpiel's own states.
        lifted = openspiel.nash_conv(config.game, saved.openspiel_policy(mine, which))
        assert lifted == pytest.approx(whole[names[which]], abs=1e-6)
        found = evaluation.evaluate(configs.Evaluation(checkpoint=str(tmp_path / "whole"), use=which))
        assert found["nash_conv"] == pytest.approx(lifted, abs=1e-9)
    assert whole["nash_conv_best"] <= whole["nash_conv"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph") / "run"
    game.run(game_config.Config(**{**EXPECTED, "game": "kuhn_poker"}), folder)
    return folder


def test_what_was_used_is_in_the_config_and_the_graph_beside_the_policy(trained):
    config = json.loads((trained / "config.json").read_text())
    assert (config["play"], config["agent_state"], config["world"]) == ("graph", "observation", "string")
    world = saved.load(trained).world
    built = openspiel.compile_game("kuhn_poker", agent_state="observation")
    assert (world.num_nodes, world.num_agent_states) == (built.num_nodes, built.num_agent_states)
    np.testing.assert_array_equal(world.legal, built.legal)


def test_a_run_on_a_graph_plays_its_best_policy_where_nothing_is_said(trained):
    state = pyspiel.load_game("kuhn_poker").new_initial_state()
    for action in (0, 1):
        state.apply_action(action)
    best = saved.openspiel_policy(saved.load(trained), "best").action_probabilities(state)
    assert dict(openspiel.bot(str(trained), 0).get_policy(state)) == pytest.approx(best)


def test_agents_that_forget_have_no_average_policy(trained):
    with pytest.raises(ValueError, match="has no average policy: use current or best"):
        evaluation.evaluate(configs.Evaluation(checkpoint=str(trained), use="average"))


def test_head_to_head_is_exact_between_tables_of_one_graph_and_played_otherwise(trained, tmp_path):
    options = {"checkpoint": str(trained), "episodes": 4000}
    uniform = evaluation.evaluate(configs.Evaluation(**options, opponent="uniform"))
    assert uniform["head_to_head"]["exact"]
    itself = evaluation.evaluate(configs.Evaluation(**options, opponent=str(trained)))
    assert itself["head_to_head"]["exact"]
    assert itself["head_to_head"]["mean"] == pytest.approx(0.0, abs=1e-12)
    game.run(game_config.Config(game="kuhn_poker", update="expected", iterations=40), tmp_path / "tree")
    tree = evaluation.evaluate(configs.Evaluation(**options, opponent=str(tmp_path / "tree")))
    assert not tree["head_to_head"]["exact"]
    assert tree["head_to_head"]["num_episodes"] == 4000


@pytest.mark.thorough
def test_a_best_response_wins_what_it_is_worth(trained):
    config = configs.Evaluation(checkpoint=str(trained), opponent="best_response", episodes=4000)
    found = evaluation.evaluate(config)
    met = found["head_to_head"]
    worth = -np.mean(found["best_response_values"])
    assert abs(met["mean"] - worth) < 2 * (met["high"] - met["low"])
    assert met["high"] < 0.3


def test_the_graph_is_chosen_where_the_tree_is_too_large(capsys):
    config = game_config.Config(game="leduc_poker", max_histories=100, update="expected")
    chosen, task = game.build(config)
    assert (chosen.play, chosen.agent_state, chosen.world) == ("graph", "observation", "string")
    told = capsys.readouterr().err
    world = openspiel.compile_game("leduc_poker", agent_state="observation")
    visited = sum(each.information_states for each in exact.responses(world, exact.uniform(world)))
    sizes = f"{world.num_nodes:,} nodes, {world.num_agent_states:,} agent states"
    assert task.opening == f"leduc_poker as a graph: {sizes}."
    assert f"An exact evaluation visits {visited:,} information states and takes " in told


def test_a_world_that_is_too_fine_makes_way_for_observations():
    name = "liars_dice(dice_sides=3)"
    fine = openspiel.compile_game(name, agent_state="observation")
    coarse = openspiel.compile_game(name, agent_state="observation", world="observations")
    assert coarse.num_nodes < fine.num_nodes
    config = game_config.Config(game=name, play="graph", max_nodes=coarse.num_nodes)
    assert game.build(config)[0].world == "observations"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"agent_state": "window:0"}, "agent_state must be observation, information_state or window:K"),
        ({"world": "none of these"}, "world must be one of string, observations"),
        ({"play": "graph", "max_nodes": 10}, "kuhn_poker has more than 10 nodes with these agent states"),
        ({"play": "graph", "max_information_states": 3}, "more than 3 information states"),
        ({"play": "graph", "learner": "rm_plus", "update": "expected"}, "takes a tree with perfect recall"),
    ],
)
def test_bad_input(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        game.build(game_config.Config(game="kuhn_poker", **options))


@pytest.mark.parametrize(
    ("flag", "options"),
    [
        ("agent_state", {"play": "compiled", "agent_state": "observation"}),
        ("average_power", {"play": "graph", "average_power": 1.0}),
        ("weights", {"play": "graph", "update": "expected", "weights": "realization"}),
    ],
)
def test_flags_that_a_graph_or_a_tree_does_not_read_are_refused(flag, options):
    with pytest.raises(ValueError, match=f"^{flag} is for "):
        schema.refuse_unread(game_config.Config(**options), {flag})


def test_a_graph_that_is_not_the_policys_is_refused(trained):
    compiling.load_graph(trained / "policy" / "graph.npz")
    content = (trained / "policy" / "graph.npz").read_bytes()
    (trained / "policy" / "graph.npz").write_bytes(content[: len(content) // 2])
    try:
        with pytest.raises(ValueError, match=r"graph\.npz"):
            saved.load(trained)
    finally:
        (trained / "policy" / "graph.npz").write_bytes(content)
