"""Compiled games: sizes, structure, errors, and play on them."""

import jax
import numpy as np
import pyspiel
import pytest

from pohp_neurd import agent_state, exact, openspiel, process
from pohp_neurd.finite import tree as trees
from pohp_neurd.openspiel import compile as compiling


@pytest.mark.parametrize(
    ("name", "histories", "states"),
    [
        ("kuhn_poker", 58, 12),
        ("kuhn_poker(players=3)", 617, 48),
        ("leduc_poker", 9457, 936),
        ("goofspiel(num_cards=4,imp_info=True,points_order=descending)", 1077, 162),
        ("matrix_rps", 13, 2),
        ("python_kuhn_poker", 58, 12),
    ],
)
def test_sizes(name, histories, states):
    tree = openspiel.compile_game(name)
    assert (tree.num_histories, tree.num_information_states) == (histories, states)
    assert len(tree.information_state_strings) == states


@pytest.fixture(scope="module")
def leduc():
    return openspiel.compile_game("leduc_poker")


def test_depth_major_with_children_side_by_side(leduc):
    depth = np.zeros(leduc.num_histories, int)
    depth[1:] = -1
    for row in range(1, leduc.num_histories):
        depth[row] = depth[leduc.parent[row]] + 1
    assert np.all(np.diff(depth) >= 0)
    np.testing.assert_array_equal(np.searchsorted(depth, np.arange(depth.max() + 1)), leduc.levels[:-1])
    for row in np.flatnonzero(leduc.num_children):
        children = np.arange(leduc.first_child[row], leduc.first_child[row] + leduc.num_children[row])
        assert np.all(leduc.parent[children] == row)
        assert np.all(np.diff(leduc.incoming_action[children]) > 0)
    assert leduc.num_children.sum() == leduc.num_histories - 1


def test_every_history_says_what_openspiel_says(leduc):
    game = pyspiel.load_game("leduc_poker")
    rng = np.random.default_rng(0)
    for row in rng.choice(leduc.num_histories, 300, replace=False):
        path, above = [], row
        while leduc.parent[above] >= 0:
            path.append(int(leduc.incoming_action[above]))
            above = leduc.parent[above]
        state = game.new_initial_state()
        probability = 1.0
        for action in reversed(path):
            if state.is_chance_node():
                probability = dict(state.chance_outcomes())[action]
            else:
                probability = 1.0
            state.apply_action(action)
        assert leduc.chance[row] == pytest.approx(probability)
        if state.is_terminal():
            assert leduc.player[row] == trees.TERMINAL
            np.testing.assert_array_equal(leduc.rewards[row], state.returns())
        elif state.is_chance_node():
            assert leduc.player[row] == trees.CHANCE
        else:
            number = leduc.information_state[row]
            assert leduc.player[row] == state.current_player() == leduc.state_player[number]
            assert leduc.information_state_strings[number] == state.information_state_string()
            np.testing.assert_array_equal(np.flatnonzero(leduc.legal[number]), state.legal_actions())
            np.testing.assert_array_equal(leduc.features[number], state.information_state_tensor())


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        "kuhn_poker",
        pytest.param("leduc_poker", marks=pytest.mark.slow),
        pytest.param("matrix_pd", marks=pytest.mark.slow),
        pytest.param("kuhn_poker(players=3)", marks=pytest.mark.slow),
        pytest.param("goofspiel(num_cards=3,imp_info=True)", marks=pytest.mark.slow),
    ],
)
def test_compiled_games_are_processes(name):
    tree = openspiel.compile_game(name)
    process.check_process(tree, num_episodes=8, num_steps=12)
    assert agent_state.has_perfect_recall(tree, agent_state.information_state(tree))


@pytest.mark.thorough
def test_sampled_play_agrees_with_exact_returns():
    """100,000 episodes of uniform play: the mean return is the exact one within 5 standard errors."""
    tree = openspiel.compile_game("kuhn_poker(players=3)")

    def episode(key):
        def step(carry, step_key):
            history, total = carry
            act_key, reply_key = jax.random.split(step_key)
            legal = tree.legal_actions(history)
            action = jax.random.categorical(act_key, jax.numpy.where(legal, 0.0, -1e9))
            going = tree.continuation(history)
            history = tree.apply(history, action, key=reply_key)
            return (history, total + going * tree.reward(history)), None

        first = tree.initial(key=key)
        steps = jax.random.split(jax.random.fold_in(key, 1), tree.spec.horizon)
        return jax.lax.scan(step, (first, tree.reward(first)), steps)[0][1]

    returns = np.asarray(jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(0), 100_000)))
    returns = returns + tree.return_shift
    error = returns.std(axis=0) / np.sqrt(len(returns))
    expected = exact.expected_returns(tree, exact.uniform(tree))
    assert np.all(np.abs(returns.mean(axis=0) - expected) < 5 * error)


def test_intermediate_rewards_are_where_they_are_earned():
    with pytest.warns(UserWarning, match="observation strings stand in"):
        tree = openspiel.compile_game("repeated_game(stage_game=matrix_pd(),num_repetitions=2)")
    earned = np.flatnonzero(np.any(tree.rewards != 0, axis=1))
    assert np.any(tree.player[earned] >= 0)
    assert np.any(tree.player[earned] == trees.TERMINAL)
    assert np.all(tree.shifted_rewards <= 0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*no information-state strings")
def test_a_repeated_game_is_a_process():
    tree = openspiel.compile_game("repeated_game(stage_game=matrix_pd(),num_repetitions=2)")
    process.check_process(tree, num_steps=8)


def test_games_of_one_player_and_small_chance():
    tree = openspiel.compile_game("nim(pile_sizes=1;2)")
    assert tree.num_agents == 2
    with pytest.warns(UserWarning, match="deep_sea"):
        alone = openspiel.compile_game("deep_sea(size=3)")
    assert alone.num_agents == 1
    # Alone, NashConv is the gap to the best plan.
    policy = exact.uniform(alone)
    best, expected = exact.best_response_values(alone, policy), exact.expected_returns(alone, policy)
    assert best[0] > expected[0]
    assert exact.nash_conv(alone, policy) == pytest.approx(best[0] - expected[0])
    # Observation strings merge paths, so the best plan over everything seen has no row for each of them.
    assert exact.best_response(alone, policy, 0) == (pytest.approx(best[0]), None)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("leduc_pokr", r"knows no game 'leduc_pokr' \(did you mean leduc_poker"),
        ("qqqqqq", "knows no game 'qqqqqq'"),
        ("leduc_poker(playrs=2)", r"leduc_poker has no parameter 'playrs' \(did you mean players\?\)"),
        ("kuhn_poker(players=30)", r"cannot load 'kuhn_poker\(players=30\)': .*30"),
        ("kuhn_poker(players=many)", "Wrong type for parameter players"),
        ("mfg_crowd_modelling", "is a mean field game"),
        ("tarok", "samples its chance events and cannot be walked: play it live"),
        (17, "must be an OpenSpiel game or its name, but is int"),
    ],
)
def test_games_that_cannot_be_compiled(name, sentence):
    with pytest.raises(ValueError, match=sentence):
        openspiel.compile_game(name)


def test_games_too_large_stop_early():
    with pytest.raises(ValueError, match=r"more than 1,000 histories \(stopped after 1,000\).*play it live"):
        openspiel.compile_game("leduc_poker", max_histories=1000)
    with pytest.raises(ValueError, match=r"^liars_dice has far more than 1,000 histories, .* play it live"):
        openspiel.compile_game("liars_dice", max_histories=1000)
    with pytest.raises(ValueError, match="max_histories must be at least 1"):
        openspiel.compile_game("kuhn_poker", max_histories=0)
    assert openspiel.compile_game("kuhn_poker", max_histories=58).num_histories == 58


HUGE = ("crazy_eights", "cursor_go", "dark_chess", "bridge", "crazyhouse", "chess", "checkers", "banqi")


@pytest.mark.parametrize("name", [*HUGE, "goofspiel", "phantom_ttt"])
def test_games_far_too_large_are_not_walked(name, monkeypatch):
    monkeypatch.setattr(compiling, "_walk", lambda *_: pytest.fail("it was walked"))
    with pytest.raises(
        ValueError, match=f"^{name} has far more than 2,000,000 histories, as random playouts"
    ):
        openspiel.compile_game(name, max_histories=2_000_000)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "kuhn_poker",
            "kuhn_poker(players=3)",
            "leduc_poker",
            "matrix_rps",
            "tiny_hanabi",
            "coordinated_mp",
        ),
        *(
            "goofspiel(num_cards=3,imp_info=True)",
            "nim(pile_sizes=1;2)",
            "oshi_zumo(coins=4,size=1,min_bid=1)",
        ),
        *("blotto(coins=4)", "lewis_signaling", "sheriff(num_rounds=1,max_bribe=1)"),
        pytest.param("liars_dice", marks=pytest.mark.slow),
        pytest.param("catch", marks=pytest.mark.slow),
        pytest.param("tiny_bridge_2p", marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore:.*no information-state strings")
def test_a_game_that_just_fits_is_never_refused(name):
    count = openspiel.compile_game(name).num_histories
    assert openspiel.compile_game(name, max_histories=count).num_histories == count


def test_memory_is_bounded():
    sentence = (
        r"^leduc_poker takes more than 1 MiB \(stopped after [\d,]+ histories with \d+ information states\)"
    )
    with pytest.raises(ValueError, match=sentence):
        openspiel.compile_game("leduc_poker", max_bytes=2**20)
    # 936 states of 30 features, 3 actions and short names, and 9,457 histories of 200 bytes: 2.3 MB.
    assert openspiel.compile_game("leduc_poker", max_bytes=3 * 2**20).num_histories == 9_457


def test_only_the_path_is_kept_of_a_walk(monkeypatch):
    """States are made when they are visited: siblings of a long path would fill the memory (crazyhouse)."""
    made = []
    monkeypatch.setattr(compiling, "_playouts_above", lambda *_: 0)
    # The class of the registered game: doctests may have loaded its module once more, under another name.
    kind = type(openspiel.load_game("python_pohp_catch").new_initial_state())
    play = kind._apply_action
    monkeypatch.setattr(kind, "_apply_action", lambda state, move: (made.append(move), play(state, move)))
    with pytest.raises(ValueError, match="stopped after 50"):
        openspiel.compile_game("python_pohp_catch", max_histories=50)
    assert len(made) == 49


def test_what_only_a_walk_can_tell():
    assert compiling.may_be_larger(openspiel.load_game("cliff_walking"), 2_000_000)
    for name in ("leduc_poker", "chess", "tarok", "crossword"):
        assert not compiling.may_be_larger(openspiel.load_game(name), 2_000_000)
