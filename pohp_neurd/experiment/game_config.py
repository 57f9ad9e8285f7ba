"""What makes a run of self-play in a game: one frozen config, with good defaults for each kind of run.

Nothing here loads JAX: a wrong flag is told of at once. `game` has its numbers over time.
"""

import dataclasses
import re
from collections.abc import Collection
from typing import Any

from pohp_neurd import checks
from pohp_neurd.experiment import schema
from pohp_neurd.experiment.schema import check, field

KINDS = {
    "table": ("compiled", "tabular", "sampled"),
    "table expected": ("compiled", "tabular", "expected"),
    "network": ("compiled", "neural", "sampled"),
    "network expected": ("compiled", "neural", "expected"),
    "live": ("live", "neural", "sampled"),
    "graph": ("graph", "tabular", "sampled"),
    "graph expected": ("graph", "tabular", "expected"),
    "graph network": ("graph", "neural", "sampled"),
    "graph network expected": ("graph", "neural", "expected"),
}
"""The kinds of runs: their play, policy and update."""

_TABLE = checks.SAMPLED
_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "episodes": (10_000_000, None, 60_000_000, None, 200_000, 20_000_000, None, 20_000_000, None),
    "iterations": (None, 50_000, None, 5_000, None, None, 4_000, None, 2_000),
    "exploration": (_TABLE["exploration"], 0.0, 0.1, 0.0, 0.1, 0.02, 0.02, 0.02, 0.02),
    "play_exploration": (_TABLE["play_exploration"], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    "batch_size": (_TABLE["batch_size"], 1, 4096, 1, 256, 4096, 1, 16384, 1),
    "step_size": (_TABLE["step_size"], 4.0, 0.0047, 0.0047, 0.01, 2.0, 0.4, 0.01, 0.01),
    "step_size_decay": (_TABLE["step_size_decay"], 0.0, 0.5, 0.5, 0.5, 0.5, 0.0, 0.5, 0.5),
    "cooling": (0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0),
    "decay_start": (_TABLE["decay_start"], 100, 900, 900, 300, 540, 100, 300, 300),
    "magnet_strength": (_TABLE["magnet_strength"], 0.05, 0.012, 0.012, 0.02, 0.016, 0.05, 0.02, 0.02),
    "magnet_decay": (_TABLE["magnet_decay"], 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    "magnet_speed": (_TABLE["magnet_speed"], 8.0, 2.0, 2.0, 2.0, 1.0, 0.8, 2.0, 2.0),
    "magnet_speed_decay": (_TABLE["magnet_speed_decay"], 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0),
    "average_power": (_TABLE["average_power"], 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    "average_forgetting": (0.0, 0.0, 0.001, 0.001, 0.001, 0.0, 0.0, 0.001, 0.001),
}
DEFAULTS: dict[tuple[str, str, str], dict[str, Any]] = {
    kind: {name: values[index] for name, values in _DEFAULTS.items()}
    for index, kind in enumerate(KINDS.values())
}
"""What is used where the user says nothing, for each kind of run."""

_CIX = {"learner": ("neurd_cix", *checks.MINIMIZERS)}
_TABULAR, _NEURAL = {"policy": "tabular"}, {"policy": "neural"}
_GRAPH, _TREE = {"play": ("auto", "graph")}, {"play": ("auto", "compiled")}
_LIVE = {"play": ("auto", "live")}


def _check_agent_state(name: str, value: str) -> None:
    if not re.fullmatch(r"observation|information_state|window:[1-9]\d*", value):
        raise ValueError(f"{name} must be observation, information_state or window:K, but is {value!r}.")


def _check_staleness(name: str, value: int) -> None:
    if value not in (0, 1):
        raise ValueError(f"{name} must be 0 or 1, but is {value}.")


def _open(name: str, help: str, **more: Any) -> Any:
    """A field whose default depends on the kind of run."""
    kinds: dict[Any, list[str]] = {}
    for kind, value in zip(KINDS, _DEFAULTS[name], strict=True):
        kinds.setdefault(value, []).append(kind)
    usual, *others = sorted(kinds, key=lambda value: -len(kinds[value]))
    shown = "; ".join([f"{usual:g}", *(f"{value:g} ({', '.join(kinds[value])})" for value in others)])
    return field(None, help, shown=shown, **more)


@dataclasses.dataclass(frozen=True)
class Config:
    """One run; None is the default of that kind of run. Wrong values raise a ValueError, before any work."""

    game: str = field(
        "leduc_poker", "An OpenSpiel game, with parameters as OpenSpiel writes them.", topic="What is trained"
    )
    policy: str = field("tabular", "tabular or neural.", choices=("tabular", "neural"))
    learner: str = field(
        "neurd_cix",
        "spg, neurd or neurd_cix; of tables also regret_matching (CFR), rm_plus (CFR+), predictive_rm_plus "
        "(PCFR+) or optimistic_hedge, with update=expected by turns of the players.",
        choices=(*checks.LEARNERS, *checks.MINIMIZERS),
    )
    update: str = field(
        "sampled",
        "sampled (from episodes) or expected (from exact values, on small games).",
        choices=("sampled", "expected"),
    )
    play: str = field(
        "auto",
        "compiled (a tree of all histories), graph (of what agents remember), live, or auto: the first of "
        "these that the game allows.",
        choices=("auto", "compiled", "graph", "live"),
    )
    max_histories: int = field(2_000_000, "A tree with more is not compiled.", at_least=1)
    agent_state: str | None = field(
        None,
        "What agents remember in a graph: observation, information_state, or window:K, the last K pairs of "
        "own action and observation.",
        shown="observation",
        check=_check_agent_state,
        only_for=_GRAPH,
    )
    world: str | None = field(
        None,
        "What else a graph's nodes are told apart by: string (the state's), or observations (nothing else).",
        choices=("string", "observations"),
        shown="string, or observations where that is too much",
        only_for=_GRAPH,
    )
    max_nodes: int = field(1_000_000, "A graph with more is not built.", at_least=1, only_for=_GRAPH)
    max_information_states: int = field(
        100_000_000, "A graph whose best responses have more is not trained on.", at_least=1, only_for=_GRAPH
    )
    seed: int = field(0, "The seed of everything random.", check=checks.seed)
    episodes: int | None = field(
        None,
        "Episodes of sampled updates.",
        topic="How long",
        at_least=1,
        shown="10 million; 20 million (graph), 60 million (network), 200 thousand (live)",
    )
    iterations: int | None = field(
        None,
        "Iterations of expected updates.",
        at_least=1,
        shown="50,000; 5,000 (network), 4,000 (graph), 2,000 (graph network)",
    )
    batch_size: int | None = _open("batch_size", "Episodes of one update.", at_least=1)
    block_size: int = field(
        128,
        "Episodes of live play in lock step, which one worker plays; an update has batch_size / block_size.",
        at_least=1,
        only_for=_LIVE,
    )
    staleness: int = field(
        0,
        "Of live play: 1 plays the next update's blocks, with the parameters that there are, while the "
        "learner works; 0 waits for it.",
        check=_check_staleness,
        only_for=_LIVE,
    )
    eval_every: int | None = field(
        None,
        "Episodes, or iterations, between two evaluations.",
        at_least=1,
        shown="a thirtieth of the run; in a graph as often as takes a tenth of the time",
    )
    checkpoint_every: int = field(10, "Evaluations between two checkpoints.", at_least=1)
    exploration: float | None = _open(
        "exploration",
        "η of NeuRD-CIX, and of sampled regrets, in [0, 1]: 0 is NeuRD, and importance weights.",
        topic="The update",
        check=checks.in_unit_interval,
        only_for=_CIX,
    )
    play_exploration: float | None = _open(
        "play_exploration",
        "ε: episodes are played by (1 - ε) π + ε uniform, and corrected for that; with baseline_of=history.",
        check=checks.in_unit_interval,
        only_for={"update": "sampled", **_TREE},
    )
    sampling: str = field(
        "outcome",
        "Of tables on trees: outcome plays whole episodes; external draws chance and the other agents only, "
        "and tries every action of the agent that learns. An episode is then such a sample.",
        choices=checks.SAMPLINGS,
        only_for={"update": "sampled", **_TABULAR, **_TREE},
    )
    estimator: str = field(
        "cix",
        "Of regret minimisers: returns are divided by min(1, π + η) (cix) or by π + η (ix).",
        choices=checks.ESTIMATORS,
        only_for={"learner": tuple(checks.MINIMIZERS), "update": "sampled"},
    )
    step_size: float | None = _open(
        "step_size",
        "α, for returns scaled to [-1, 0]; for networks the optimizer's learning rate.",
        check=checks.non_negative,
    )
    step_size_decay: float | None = _open(
        "step_size_decay", "p of α / (1 + t / decay_start)^p at update t.", check=checks.non_negative
    )
    cooling: float | None = _open(
        "cooling",
        "c of the factor (1 - t / T)^c on α, with T the updates of the run.",
        check=checks.non_negative,
    )
    exploration_decay: float = field(0.0, "The same power for η.", check=checks.non_negative, only_for=_CIX)
    decay_start: int | None = _open("decay_start", "See --step_size_decay; in updates.", at_least=1)
    baseline: bool = field(True, "Subtract a learned value from returns.", only_for={"update": "sampled"})
    baseline_of: str | None = field(
        None,
        "Whose value that is: of every history of a tree, which takes the noise of later moves too, or of "
        "every state.",
        choices=checks.BASELINES,
        shown="history on trees, but with SPG; state elsewhere",
        only_for={"update": "sampled"},
    )
    average_over: str = field(
        "visits",
        "Of tables: a state's direction is a mean over its visits, or over episodes.",
        choices=("visits", "episodes"),
        only_for=_TABULAR,
    )
    weights: str = field(
        "counterfactual",
        "Of expected updates: counterfactual or realization.",
        choices=("counterfactual", "realization"),
        only_for={"update": "expected", **_TREE},
    )
    alternating: bool | None = field(
        None,
        "Update one agent at a time: at each update another; by expected updates of tables on trees, each in "
        "turn.",
        shown="true for tables on trees, but for regret minimisers that sample; else false",
    )
    threshold: float | None = field(
        None,
        "Logits are not pushed beyond this; none for no bound.",
        topic="Regularisation and averages",
        check=checks.positive,
    )
    entropy_cost: float = field(0.0, "Pull to the uniform policy.", check=checks.non_negative)
    magnet_strength: float | None = _open(
        "magnet_strength",
        "Pull to the magnet, for returns scaled to [-1, 0]; 0 for none.",
        check=checks.non_negative,
    )
    magnet_decay: float | None = _open(
        "magnet_decay", "Its power of decay over time.", check=checks.non_negative
    )
    # With speed 0 the magnet stays where it began, which for a table is the uniform policy.
    magnet_speed: float | None = _open(
        "magnet_speed",
        "c: the magnet moves c / decay_start of its way to the policy; 0: entropy.",
        check=checks.non_negative,
    )
    magnet_speed_decay: float | None = _open(
        "magnet_speed_decay", "p of its factor (1 + t / decay_start)^-p.", check=checks.non_negative
    )
    average_power: float | None = _open(
        "average_power",
        "p of the weight t^p in the average policy: 0 uniform, 1 linear.",
        check=checks.non_negative,
        only_for={**_TABULAR, **_TREE},
    )
    average_forgetting: float | None = _open(
        "average_forgetting",
        "What was before fades by this at each update: a table's geometric weights, or the rate of a "
        "network's average.",
        check=checks.in_unit_interval,
    )
    precision: str = field(
        "float64",
        "Of tables with update=expected, on trees: float32 or float64.",
        choices=("float32", "float64"),
        only_for={"update": "expected", **_TABULAR, **_TREE},
    )
    hidden_layers: tuple[int, ...] = field(
        (128, 128), "Units of each hidden layer.", topic="Networks", only_for=_NEURAL
    )
    optimizer: str = field(
        "adam_without_momentum",
        "adam, adam_without_momentum (the paper's) or sgd.",
        choices=checks.OPTIMIZERS,
        only_for=_NEURAL,
    )
    shared: bool = field(True, "One network for all seats; --noshared for one each.", only_for=_NEURAL)
    common_mode: str = field(
        checks.COMMON_MODE,
        "dropped: directions centred over the actions; or paper.",
        choices=checks.COMMON_MODES,
        only_for=_NEURAL,
    )

    def __post_init__(self) -> None:
        if not self.game:
            raise ValueError("game must be the name of an OpenSpiel game, but is empty.")
        check(self)
        if not self.hidden_layers or min(self.hidden_layers) < 1:
            raise ValueError(f"hidden_layers must be sizes of at least 1, but are {self.hidden_layers}.")
        sampled = self.update == "sampled"
        if sampled and self.iterations is not None:
            raise ValueError("iterations is for update=expected: sampled updates are counted in episodes.")
        if not sampled and self.episodes is not None:
            raise ValueError("episodes is for update=sampled: expected updates are counted in iterations.")
        if not sampled and self.batch_size not in (None, 1):
            raise ValueError(f"batch_size is for update=sampled, but is {self.batch_size}.")
        if self.learner in checks.MINIMIZERS and self.policy != "tabular":
            raise ValueError(
                f"learner={self.learner} takes policy=tabular: a network has no regrets to match."
            )
        if self.baseline_of is not None and not self.baseline:
            raise ValueError("baseline_of is for baseline=true: leave one of the two out.")
        if self.play == "live" and (self.policy, self.update) != ("neural", "sampled"):
            raise ValueError(
                f"live play trains policy=neural with update=sampled, but policy is {self.policy} "
                f"and update is {self.update}."
            )

    @property
    def budget(self) -> int:
        """Episodes, or iterations of expected updates."""
        found = self.episodes if self.update == "sampled" else self.iterations
        assert found is not None, "a config is resolved before it is run"
        return found


@dataclasses.dataclass(frozen=True)
class Actors:
    """Who plays the blocks of live training, which changes no figure: not what is trained, but where."""

    executor: str = field(
        "local",
        "local (processes on this machine) or ray (a cluster).",
        topic="Where live play is done",
        choices=("local", "ray"),
    )
    workers: int | None = field(
        None,
        "How many play blocks side by side.",
        at_least=1,
        shown="1; with ray as many as the cluster has cores",
    )
    address: str | None = field(
        None,
        "Of a Ray cluster that is running.",
        shown="none: one is started here",
        only_for={"executor": "ray"},
    )

    def __post_init__(self) -> None:
        check(self)


def resolved(config: Config, play: str, table_size: int = 0) -> Config:
    """`config` for that kind of `play`, with nothing left open.

    An update costs a pass over the whole table, of `table_size` entries: a large one wants larger batches.
    """
    if config.learner in checks.MINIMIZERS and play != "compiled":
        raise ValueError(
            f"learner={config.learner} takes a tree with perfect recall, which a {play} run has not."
        )
    config = dataclasses.replace(config, play=play)
    kind = (play, config.policy, config.update)
    filled = {name: value for name, value in DEFAULTS[kind].items() if getattr(config, name) is None}
    if kind == KINDS["table"] and config.batch_size is None:
        external = config.sampling == "external"
        filled["batch_size"] = (
            checks.EXTERNAL_BATCH_SIZE if external else checks.suited_batch_size(table_size)
        )
    if config.learner in checks.MINIMIZERS and config.average_power is None:
        filled["average_power"] = checks.MINIMIZERS[config.learner]
    if config.learner in checks.MINIMIZERS and config.step_size is None:
        filled["step_size"] = checks.STEP_SIZE
    if config.alternating is None:
        by_logits = kind == KINDS["table"] and config.learner in checks.LEARNERS
        filled["alternating"] = by_logits or kind == KINDS["table expected"]
    if config.baseline_of is None and config.baseline:
        suits = (
            kind in (KINDS["table"], KINDS["network"])
            and config.learner != "spg"
            and config.sampling == "outcome"
        )
        filled["baseline_of"] = "history" if suits else "state"
    if filled.get("baseline_of", config.baseline_of) != "history":
        filled["play_exploration"] = config.play_exploration or 0.0
    config = dataclasses.replace(config, **filled)
    _check_baseline(config)
    if config.eval_every is None and play != "graph":
        config = dataclasses.replace(config, eval_every=max(1, config.budget // 30))
    if config.policy == "neural":
        checks.positive("average_forgetting", config.average_forgetting)
    # The factors (1 − t / T)^c add up to T / (c + 1), and those of a decay d to start / (d − 1): beyond these
    # bounds to no more than the first. A magnet of strength τ lets a logit move by 1 / τ of its direction.
    whole_run = (updates(config), "updates of the run")
    bounds = {"cooling": whole_run, "step_size_decay": (config.decay_start or 1, "updates of decay_start")}
    for name, (bound, what) in {**bounds, "magnet_strength": whole_run}.items():
        if getattr(config, name) > bound:
            raise ValueError(
                f"{name} must be at most the {bound:,} {what}, or nothing is learnt, "
                f"but is {getattr(config, name):g}."
            )
    checks.count("the number of updates", updates(config))
    return config


def _check_baseline(config: Config) -> None:
    """Refuses what a resolved config cannot have of values of histories and of exploring play."""
    if config.sampling == "external" and config.play != "compiled":
        raise ValueError(f"sampling=external takes a tree, which a {config.play} run has not.")
    if config.baseline_of == "history" and config.play != "compiled":
        raise ValueError(f"baseline_of=history takes a tree, which a {config.play} run has not.")
    if config.play_exploration and config.baseline_of != "history":
        raise ValueError("play_exploration needs baseline_of=history, which corrects for it.")
    if config.play_exploration and config.learner == "spg":
        raise ValueError(
            "play_exploration is not for learner=spg, whose direction is of its own policy's draws."
        )


_FOR_MINIMIZERS = {
    "expected": ("iterations", "precision"),
    "sampled": (
        *("episodes", "batch_size", "exploration", "exploration_decay", "play_exploration", "estimator"),
        "sampling",
        *("baseline", "baseline_of", "average_over", "average_forgetting", "alternating", "decay_start"),
    ),
}
_ALWAYS = (
    *("game", "policy", "learner", "update", "play", "max_histories", "seed", "eval_every"),
    *("checkpoint_every", "average_power"),
)


def refuse_unread(config: Config, given: Collection[str]) -> None:
    """Raises a ValueError if one of the fields `given`, which somebody has set, is not read by this run."""
    schema.refuse_unread(config, given)
    if config.sampling == "external":
        for name in sorted({"baseline", "baseline_of", "play_exploration"} & set(given)):
            raise ValueError(f"{name} is not read by sampling=external: leave it out.")
    if config.learner in checks.MINIMIZERS:
        steps = ["step_size"] if config.learner == "optimistic_hedge" else []
        for name in sorted(set(given) - {*_ALWAYS, *_FOR_MINIMIZERS[config.update], *steps}):
            raise ValueError(f"{name} is not read by learner={config.learner}: leave it out.")


def updates(config: Config) -> int:
    """Updates of the whole run."""
    return -(-config.budget // (config.batch_size or 1))
