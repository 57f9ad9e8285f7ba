"""The paper's experiment from end to end: SPG's best learning rate, then NeuRD-CIX over exploration at it.

Morrill et al. (2022), Section 5. All runs are settings of one sweep, so what is finished is never run again,
at this scale or at another.
"""

import dataclasses
import pathlib
from typing import Any, NamedTuple

import numpy as np

from pohp_neurd import checks
from pohp_neurd.experiment import configs, grid, schema, sweep
from pohp_neurd.results import records, table

# As the paper lists them; 0.00008 stands there twice. Catch's best, 0.001797, is listed as 0.00180.
PAPER_RATES = (
    *(0.00001, 0.00002, 0.00004, 0.00005, 0.00008, 0.00010, 0.00014, 0.00016, 0.00017, 0.00023),
    *(0.00028, 0.00032, 0.00039, 0.00046, 0.00063, 0.00065, 0.00077, 0.00108, 0.00126, 0.00129),
    *(0.00180, 0.00215, 0.00251, 0.00300, 0.00359, 0.00500, 0.00599, 0.01000),
)
PAPER_BEST = {"catch": 0.001797, "cart_pole": 0.00005}
"""SPG's best learning rate according to the paper."""


class Scale(NamedTuple):
    """How much of the experiment is run."""

    rates: tuple[float, ...]
    rate_seeds: int
    explorations: tuple[float, ...]
    seeds: int
    num_steps: int
    interval: int
    width: int = 256


SCALES = {
    "smoke": Scale((0.00003, 0.001), 2, (0.0, 1.0), 2, 1_000, 500, width=16),
    "small": Scale(PAPER_RATES, 5, (0.0, 0.01, 0.03, 0.1, 0.3, 1.0), 20, 300_000, 5_000),
    "full": Scale(
        PAPER_RATES, 20, (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0), 20, 300_000, 5_000
    ),
}

READING = ("updated", "baseline", "common_mode", "probability", "bootstrapped", "epsilon")
_FLAGS = {flag.field: flag for flag in schema.flags(configs.SingleAgent)}
_PAPER: dict[str, Any] = {name: _FLAGS[name].default for name in READING} | {"common_mode": "paper"}
"""How we read the paper. Its directions have their common mode, whatever the default elsewhere."""


def _reading(name: str) -> Any:
    """The field of a single run, with the paper's default."""
    return schema.field(_PAPER[name], _FLAGS[name].help, _FLAGS[name].topic)


@dataclasses.dataclass(frozen=True)
class Config:
    """One environment at one scale; how the paper is read is said by the same options as of a single run."""

    environment: str = schema.field(
        "catch", "catch or cart_pole.", "What is run", choices=configs.ENVIRONMENTS
    )
    scale: str = schema.field(
        "small",
        "smoke (a minute), small (an hour on 2 cores: 28 rates x 5 seeds, 6 explorations x 20) or full (28 "
        "rates x 20 seeds, 11 explorations x 20 seeds).",
        "What is run",
        choices=tuple(SCALES),
    )
    learning_rate: str = schema.field(
        "best",
        "best (of the sweep, by mean accumulated reward), paper (0.001797 in catch, 0.00005 in cart pole; no "
        "sweep) or a number.",
        "What is run",
    )
    updated: str = _reading("updated")
    baseline: str = _reading("baseline")
    common_mode: str = _reading("common_mode")
    probability: str = _reading("probability")
    bootstrapped: str = _reading("bootstrapped")
    epsilon: float = _reading("epsilon")

    def __post_init__(self) -> None:
        schema.check(self)
        if self.learning_rate not in ("best", "paper"):
            try:
                checks.positive("learning_rate", float(self.learning_rate))
            except ValueError:
                raise ValueError(
                    f"learning_rate must be best, paper or a number above 0, but is {self.learning_rate!r}."
                ) from None
        configs.SingleAgent(**{name: getattr(self, name) for name in READING})

    @property
    def fixed(self) -> dict[str, Any]:
        """The flags that all runs have. Those that are a run's defaults are left out."""
        size, default = SCALES[self.scale], configs.SingleAgent()
        always = {"environment": self.environment, "num_steps": size.num_steps, "interval": size.interval}
        given = {"width": size.width, **{name: getattr(self, name) for name in READING}}
        return always | {n: value for n, value in given.items() if value != getattr(default, n)}

    @property
    def suffix(self) -> str:
        """Of the names of tables and pictures: empty at the paper's size in the documented reading."""
        parts = ["smoke"] if self.scale == "smoke" else []
        parts += [f"{name}_{value}" for name, value in self._departures.items()]
        return "".join(f"_{part}" for part in parts)

    @property
    def title(self) -> str:
        """The environment, and what is read in another way than documented."""
        others = [f"{name}={value}" for name, value in self._departures.items()]
        return ", ".join([self.environment.replace("_", " "), *others])

    @property
    def _departures(self) -> dict[str, Any]:
        """What is read in another way than documented."""
        return {name: getattr(self, name) for name in READING if getattr(self, name) != _PAPER[name]}


def run(config: Config, path: records.Path, execute: sweep.Execute, **more: Any) -> dict[str, Any]:
    """Runs what is missing in the folder `path`; leaves tables and pictures; the final figures.

    `more` is for `sweep.run`.
    """
    size, folder = SCALES[config.scale], pathlib.Path(path)
    figures: dict[str, Any] = {"environment": config.environment, "scale": config.scale}
    failed = []
    if config.learning_rate == "best":
        tried = sweep.run(rate_settings(config), folder, execute, **more)
        failed += sweep.failures(tried)
        figures |= _rates(folder, sweep.rows(tried), config)
        rate = figures["learning_rate"]
    else:
        paper = config.learning_rate == "paper"
        rate = PAPER_BEST[config.environment] if paper else float(config.learning_rate)
        figures["learning_rate"] = rate
    found = sweep.run(exploration_settings(config, rate), folder, execute, **more)
    failed += sweep.failures(found)
    figures |= _explorations(folder, sweep.rows(found), config, rate)
    # SPG at the best rate is in both.
    return {**figures, "seeds": size.seeds, "failed": list(dict.fromkeys(failed))}


def rate_settings(config: Config) -> list[grid.Setting]:
    """SPG at every learning rate."""
    size = SCALES[config.scale]
    return _settings(config, "spg", learning_rate=size.rates, seed=range(size.rate_seeds))


def exploration_settings(config: Config, rate: float) -> list[grid.Setting]:
    """SPG, and NeuRD-CIX at every exploration, all at the learning rate `rate`."""
    size = SCALES[config.scale]
    seeds = range(size.seeds)
    spg = _settings(config, "spg", learning_rate=[rate], seed=seeds)
    return spg + _settings(
        config, "neurd_cix", learning_rate=[rate], exploration=size.explorations, seed=seeds
    )


def _settings(config: Config, learner: str, **values: Any) -> list[grid.Setting]:
    fixed = {name: [value] for name, value in config.fixed.items()}
    swept = {name: list(each) for name, each in values.items()}
    return grid.settings([grid.Grid("train_single_agent", {**fixed, "learner": [learner], **swept})])


def _rates(folder: pathlib.Path, rows: list[dict[str, Any]], config: Config) -> dict[str, Any]:
    summaries = table.summarise(rows, by=["learning_rate"], value="total_reward")
    # The mean of the seeds that did not fail says too much for a rate at which some did.
    whole = [row for row in summaries if row["runs"] == SCALES[config.scale].rate_seeds]
    if not whole:
        raise ValueError(f"every learning rate failed on a seed: {folder / 'failures.csv'} says why.")
    best = max(whole, key=lambda row: row["mean"])
    title = f"{config.title}: SPG over learning rates"
    place = folder / f"learning_rates{config.suffix}"
    _write(place, summaries, {"learning rate": "{learning_rate}"}, rows, x="learning_rate", title=title)
    return {"learning_rate": best["learning_rate"], "spg_best_mean": best["mean"]}


def _explorations(
    folder: pathlib.Path, rows: list[dict[str, Any]], config: Config, rate: float
) -> dict[str, Any]:
    spg, cix = ([row for row in rows if row["learner"] == name] for name in ("spg", "neurd_cix"))
    if not (spg and cix):
        raise ValueError(f"every run of SPG or of NeuRD-CIX failed: {folder / 'failures.csv'} says why.")
    summaries = [
        {"learner": "SPG", "exploration": "", **row}
        for row in table.summarise(spg, by=[], value="total_reward")
    ] + [
        {"learner": "NeuRD-CIX", **row}
        for row in table.summarise(cix, by=["exploration"], value="total_reward")
    ]
    shown = np.format_float_positional(rate, trim="-")  # 0.00005, not 5e-05
    place = folder / f"explorations_{shown}{config.suffix}"
    columns = {"learner": "{learner}", "exploration": "{exploration}"}
    title = f"{config.title} at learning rate {shown}, {cix[0]['steps']:,} steps"
    _write(place, summaries, columns, cix, x="exploration", reference=spg, title=title)
    return {
        "spg_mean": summaries[0]["mean"],
        "neurd_cix_means": {f"{row['exploration']:g}": row["mean"] for row in summaries[1:]},
        "table": f"{place}.md",
        "picture": f"{place}.png",
    }


def _write(
    place: pathlib.Path,
    summaries: list[dict[str, Any]],
    columns: dict[str, str],
    rows: list[dict[str, Any]],
    **drawing: Any,
) -> None:
    """The table of `summaries`, as CSV and for people, and the picture of `rows`."""
    from pohp_neurd.results import figures

    records.write_csv(f"{place}.csv", summaries, list(summaries[0]))
    records.write_text(f"{place}.md", table.markdown(summaries, {**columns, **table.COLUMNS}))
    figures.sensitivity(f"{place}.png", rows, **drawing)
