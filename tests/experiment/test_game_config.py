"""The config of self-play: what is refused, and what is filled in."""

import dataclasses

import pytest

from pohp_neurd.experiment import game_config, schedules


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"exploration": 1.5}, r"exploration must lie in \[0, 1\], but is 1.5"),
        ({"batch_size": 0}, "batch_size must be at least 1, but is 0"),
        ({"episodes": 0}, "episodes must be at least 1, but is 0"),
        ({"step_size": -1.0}, "step_size must be a finite number of at least 0"),
        ({"policy": "linear"}, "policy must be one of"),
        ({"learner": "cfr"}, "learner must be one of"),
        ({"iterations": 5}, "iterations is for update=expected"),
        ({"baseline": False, "baseline_of": "state"}, "baseline_of is for baseline=true"),
        (
            {"learner": "rm_plus", "update": "expected", "policy": "neural"},
            "takes policy=tabular: a network has no regrets",
        ),
        ({"update": "expected", "episodes": 5}, "episodes is for update=sampled"),
        ({"update": "expected", "batch_size": 5}, "batch_size is for update=sampled"),
        ({"play": "live"}, "live play trains policy=neural with update=sampled, but policy is tabular"),
        ({"hidden_layers": ()}, "hidden_layers must be sizes of at least 1"),
        ({"average_forgetting": 2.0}, r"average_forgetting must lie in \[0, 1\]"),
        ({"staleness": 2}, "staleness must be 0 or 1, but is 2"),
        ({"block_size": 0}, "block_size must be at least 1, but is 0"),
        (
            {"step_size": 1e300},
            r"step_size must be at most 3.4e\+38, as single precision goes, but is 1e\+300",
        ),
        ({"exploration_decay": 1e300}, "exploration_decay must be at most"),
        ({"game": ""}, "game must be the name of an OpenSpiel game, but is empty"),
    ],
)
def test_what_is_refused(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        game_config.Config(**given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"cooling": 1e9}, r"cooling must be at most the 40 updates of the run, .* but is 1e\+09"),
        ({"step_size_decay": 1e9}, "step_size_decay must be at most the 1,000 updates of decay_start"),
        ({"magnet_strength": 1e30}, r"magnet_strength must be at most the 40 updates .* but is 1e\+30"),
    ],
)
def test_what_leaves_nothing_to_learn_is_refused(given, sentence):
    config = game_config.Config(episodes=4_000, batch_size=100, **given)
    with pytest.raises(ValueError, match=sentence):
        game_config.resolved(config, "compiled")
    (name,) = given
    bound = 1000 if name == "step_size_decay" else 40
    game_config.resolved(dataclasses.replace(config, **{name: float(bound)}), "compiled")


def test_a_pull_that_overshoots_is_refused():
    """A step of α towards a magnet of strength τ takes 1 − α τ of the way back: it must not grow."""
    config = game_config.resolved(
        game_config.Config(policy="neural", optimizer="sgd", step_size=0.5, magnet_strength=1.0), "compiled"
    )
    assert schedules.magnet(config, 3.9) is not None
    with pytest.raises(ValueError, match="2, or the pull overshoots, but is 2"):
        schedules.magnet(config, 4.0)
    assert schedules.magnet(dataclasses.replace(config, optimizer="adam"), 4.0) is not None


@pytest.mark.parametrize("kind", game_config.DEFAULTS)
def test_a_resolved_config_leaves_nothing_open_and_keeps_what_was_said(kind):
    play, policy, update = kind
    config = game_config.resolved(game_config.Config(policy=policy, update=update, step_size=0.125), play)
    said = dataclasses.asdict(config)
    unused = {"threshold", "iterations" if update == "sampled" else "episodes", "agent_state", "world"}
    if play == "graph":
        unused.add("eval_every")  # as often as the time allows
    assert {name for name, value in said.items() if value is None} == unused
    assert config.step_size == 0.125
    assert config.play == play
    assert config.eval_every == (None if play == "graph" else config.budget // 30)


def test_a_run_that_cools_ends_at_a_step_of_zero():
    config = game_config.Config(episodes=1000, batch_size=10, step_size=8.0, step_size_decay=0.0, cooling=2.0)
    schedule = schedules.step_size(game_config.resolved(config, "compiled"))
    assert [float(schedule(t)) for t in (0, 50, 100)] == pytest.approx([8.0, 2.0, 0.0])


def test_schedules():
    config = game_config.resolved(
        game_config.Config(step_size=8.0, step_size_decay=0.5, decay_start=100, cooling=0.0), "compiled"
    )
    assert float(schedules.step_size(config)(300)) == pytest.approx(4.0)
    config = dataclasses.replace(config, exploration=0.4, exploration_decay=1.0)
    assert float(schedules.rule(config).exploration(100)) == pytest.approx(0.2)
    config = dataclasses.replace(
        config, magnet_strength=0.1, magnet_decay=2.0, magnet_speed=2.0, magnet_speed_decay=1.0
    )
    magnet = schedules.magnet(config)
    assert float(magnet.speed(0)) == pytest.approx(2 / 100)
    assert float(magnet.speed(900)) == pytest.approx(2 / 1000)
    assert float(magnet.strength(900)) == pytest.approx(0.1 / 100)
    assert schedules.magnet(dataclasses.replace(config, magnet_strength=0.0)) is None


@pytest.mark.parametrize("policy", ["tabular", "neural"])
def test_a_run_without_a_baseline_has_none_of_histories_either(policy):
    config = game_config.resolved(game_config.Config(baseline=False, policy=policy), "compiled", 24)
    assert config.baseline_of is None
    assert config.play_exploration == 0.0
