"""The ablation in catch, on tiny networks."""

import dataclasses

import ablate
import pytest

from pohp_neurd.experiment import single_agent
from pohp_neurd.online import agent as online
from pohp_neurd.results import table

SETTING = "neurd_cix,common_mode=dropped,epsilon=0.01"


def test_a_setting_says_what_it_changes():
    config = ablate.experiment(SETTING, seeds=3, width=256)
    default = online.Options(learner="neurd_cix", common_mode="paper")
    assert config.options() == dataclasses.replace(default, common_mode="dropped", epsilon=0.01)
    assert config.learning_rates == (0.001797,)
    assert (config.seeds, config.num_steps, config.explorations) == (3, 300_000, (1.0,))


def test_the_settings_change_at_most_one_option_each():
    for setting in ablate.SETTINGS:
        options = ablate.experiment(setting, seeds=1, width=256).options()
        default = online.Options(learner=options.learner, common_mode="paper")
        changed = [name for name, value in vars(options).items() if value != getattr(default, name)]
        assert len(changed) == setting.count(",") <= 1


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("sarsa", "learner must be one of spg, neurd, neurd_cix"),
        ("spg,width=8", "a setting changes any of updated, .*, but one says 'width=8'"),
        ("spg,epsilon", "but one says 'epsilon'"),
        ("spg,epsilon=much", "epsilon must be a number, but is 'much'"),
    ],
)
def test_a_wrong_setting_is_refused_before_any_work(setting, sentence):
    with pytest.raises(ValueError, match=sentence):
        ablate.experiment(setting, seeds=1, width=256)


@pytest.mark.slow
def test_a_study_goes_on_where_it_was(tmp_path):
    """To the second mark in two calls: the figures of one call of `single_agent`, nothing done twice."""
    config = ablate.experiment(SETTING, seeds=2, width=8)
    first = ablate.run(tmp_path, {SETTING: config}, until=1_000)
    assert [(row["seed"], row["steps"]) for row in first] == [(0, 1_000), (1, 1_000)]
    rows = ablate.run(tmp_path, {SETTING: config}, until=2_000)
    assert rows[:2] == first
    assert [(row["seed"], row["steps"]) for row in rows[2:]] == [(0, 2_000), (1, 2_000)]
    assert table.figures(tmp_path / "ablation.csv", ablate.COLUMNS, text=["setting"]) == rows
    single_agent.run(dataclasses.replace(config, num_steps=2_000), tmp_path / "alone")
    alone = table.read(tmp_path / "alone" / "metrics.csv")
    assert [row["total_reward"] for row in rows[2:]] == [row["total_reward"] for row in alone[-2:]]
    assert [row["late_misses"] for row in rows[2:]] == [
        round(-row["reward"] * 9 / 1_000, 5) for row in alone[-2:]
    ]
