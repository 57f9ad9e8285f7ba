"""A flag that is declared once: on the command line, in JSON, in sweeps and in ids."""

import dataclasses
import json

import pytest
from absl import flags as absl_flags
from absl.testing import flagsaver

from pohp_neurd import checks
from pohp_neurd.experiment import command_line, configs, game_config, grid, schema
from pohp_neurd.results import records


@dataclasses.dataclass(frozen=True)
class Config:
    """A config of this test alone."""

    kind: str = schema.field("round", "round or square.", "Shape", choices=("round", "square"))
    sizes: tuple[int, ...] = schema.field((3, 4), "Of each part.", "Shape", at_least=1)
    names: tuple[str, ...] = schema.field(("a",), "Of each part.", "Shape")
    radius: float | None = schema.field(
        None, "Of what is round.", "Shape", check=checks.positive, only_for={"kind": "round"}
    )
    count: int = schema.field(7, "How many.", "Number", shown="a lucky one", id_name="number")
    solid: bool = schema.field(True, "Not hollow.", "Number")

    def __post_init__(self):
        schema.check(self)


@pytest.fixture
def call():
    """The config that a command line makes."""
    known = set(absl_flags.FLAGS)
    command_line.define(Config)
    absl_flags.FLAGS.mark_as_parsed()

    def config(*arguments):
        with flagsaver.flagsaver():
            command_line.parse(["script", *arguments])
            return command_line.config(Config), command_line.given(Config)

    yield config
    for name in set(absl_flags.FLAGS) - known:
        delattr(absl_flags.FLAGS, name)


@pytest.fixture
def swept(monkeypatch):
    """The settings of a sweep of a script with that config."""
    monkeypatch.setitem(grid.JOBS, "shapes", grid.Job(Config, lambda config, path, given: {}))
    return lambda *texts: grid.settings([grid.parse("shapes", texts)])


def test_a_declared_field_is_a_flag(call):
    assert call() == (Config(), frozenset())
    found, given = call("--sizes=1,2e1", "--radius=0.5", "--count=3", "--nosolid", "--names=b,c")
    assert found == Config(sizes=(1, 20), radius=0.5, count=3, solid=False, names=("b", "c"))
    assert given == {"sizes", "radius", "count", "solid", "names"}


def test_both_spellings_of_lists_are_read_everywhere(call, swept):
    assert call("--sizes=5x6", "--names=b+c")[0] == Config(sizes=(5, 6), names=("b", "c"))
    found = swept("sizes=5x6,7", "names=b+c")
    assert [setting.flags["sizes"] for setting in found] == [(5, 6), (7,)]
    assert {setting.flags["names"] for setting in found} == {("b", "c")}
    assert schema.text((5, 6)) == "5x6"
    assert schema.text(("b", "c")) == "b+c"


def test_a_declared_field_can_be_swept_and_has_an_id(swept):
    first, second = swept("count=1,2", "solid=false")
    assert (first.flags, second.flags["count"]) == ({"count": 1, "solid": False}, 2)
    config, given = schema.of_setting(Config, "shapes", first.flags)
    assert config == Config(count=1, solid=False)
    assert given == {"count", "solid"}
    # An older name, in which ids were made, still means the same.
    (older,) = swept("number=1", "solid=false")
    assert older == first
    assert older.id == first.id != second.id


def test_a_declared_field_is_in_config_json(tmp_path):
    config = Config(sizes=(5, 6))
    with records.opened(tmp_path / "run", dataclasses.asdict(config)) as folder:
        content = json.loads(folder.config.read_text())
    kinds = {flag.field: flag.kind for flag in schema.flags(Config)}
    assert (
        Config(**{name: schema.read(name, kinds[name], value) for name, value in content.items()}) == config
    )


def test_help_has_topics_meanings_and_defaults(call, monkeypatch, capsys):
    monkeypatch.setattr(command_line.app, "run", lambda main, flags_parser: flags_parser(["x", "--help"]))
    with pytest.raises(SystemExit):
        command_line.run(lambda arguments: None, "Draws shapes.")
    told = capsys.readouterr().out
    assert told.startswith("Draws shapes.\n\n")
    assert told.index("Shape:") < told.index("--kind") < told.index("Number:") < told.index("--solid")
    for line in ("round or square. Default: round.", "Of each part. Default: 3,4.", "a lucky one."):
        assert line in told


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--kind=oval"], "kind must be one of round, square, but is 'oval'."),
        (["--sizes=3,0"], "sizes must be at least 1, but is 0."),
        (["--sizes=3,big"], "sizes must be whole numbers with commas between them, but is '3,big'."),
        (["--radius=0"], "radius must be a finite number above 0, but is 0."),
        (["--kind=square", "--radius=1"], "radius is for kind=round: square has none, so leave it out."),
    ],
)
def test_what_is_declared_is_checked(call, arguments, sentence):
    with pytest.raises(ValueError, match=sentence.replace("'", ".")) as told:
        call(*arguments)
    assert str(told.value) == sentence


def test_none_is_a_value_where_the_field_says_so(call, swept):
    assert call("--radius=none", "--kind=square")[0].radius is None
    assert swept("radius=none", "kind=square")[0].flags["radius"] is None
    with pytest.raises(ValueError, match="count must be of the kind int, but is 'none'"):
        swept("count=none")


UNREAD = [
    ({"optimizer": "adam"}, "optimizer is for policy=neural: tabular has none"),
    ({"hidden_layers": "8x8"}, "hidden_layers is for policy=neural: tabular has none"),
    ({"shared": "true"}, "shared is for policy=neural"),
    ({"common_mode": "paper"}, "common_mode is for policy=neural"),
    ({"policy": "neural", "average_power": 1}, "average_power is for policy=tabular: neural has none"),
    ({"policy": "neural", "average_over": "visits"}, "average_over is for policy=tabular: neural has none"),
    ({"weights": "realization"}, "weights is for update=expected: sampled has none"),
    ({"update": "expected", "baseline": "false"}, "baseline is for update=sampled: expected has none"),
    ({"learner": "spg", "exploration": 0.1}, "exploration is for learner=neurd_cix or .*: spg has none"),
    (
        {"policy": "neural", "play": "compiled", "staleness": 1},
        "staleness is for play=auto or live: compiled has none",
    ),
]


@pytest.mark.parametrize(("given", "sentence"), UNREAD, ids=[list(given)[-1] for given, _ in UNREAD])
def test_what_a_run_in_a_game_does_not_read_is_refused(given, sentence):
    """Also where it is given its default: somebody believes that it matters."""
    values = {name: [value] for name, value in given.items()}
    with pytest.raises(ValueError, match=sentence):
        grid.settings([grid.Grid("train_game", {"game": ["kuhn_poker"], **values})])


def test_what_is_not_given_is_not_refused():
    schema.refuse_unread(game_config.Config(optimizer="adam"), {"game"})


def test_arms_are_of_problems_that_leave_them_open():
    with pytest.raises(ValueError, match="arms is for problem=bernoulli or switching or adaptive: kuhn has"):
        schema.of_setting(configs.Bandit, "bandit", {"problem": "kuhn", "arms": 3})


def test_every_flag_of_every_script_says_what_it_means():
    for config_class in (*(job.config for job in grid.JOBS.values()), configs.AgentLoop, configs.Evaluation):
        declared = schema.flags(config_class)
        assert {flag.field for flag in declared} == {each.name for each in dataclasses.fields(config_class)}
        for flag in declared:
            assert flag.help.endswith("."), flag.name
            assert flag.topic
