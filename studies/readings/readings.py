"""Other readings of the paper's Section 5: is there one under which SPG's best learning rate is the paper's?

    python studies/readings/readings.py --output_dir=runs/readings
    python studies/readings/readings.py --output_dir=runs/readings --reading=n_step --rates=0.00004,0.0018

Each reading changes one thing in what `online.Options` documents, or two. SPG learns in catch, or in cart
pole, for 300,000 steps at each learning rate and seed. Rows are written as runs finish (rows.csv); called
again, it resumes. The table and the figure are of all rows there are.
"""

import os

# One core: set before JAX starts.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import dataclasses
import functools
import itertools
import math
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags, logging
from pohp_neurd.games import cart_pole, catch

from pohp_neurd import files, learners, neural, policy, returns
from pohp_neurd.experiment import executor, reproduction
from pohp_neurd.online import actor_critic, by_rows, lifetimes
from pohp_neurd.online import agent as online
from pohp_neurd.results import figures, records, table

STEPS, PIECES = 300_000, 10
PAPER = pathlib.Path(__file__).resolve().parents[1] / "paper"
"""The documented reading's rows."""
COLUMNS = ("reading", "learning_rate", "seed", "total_reward", "losses_at_end")
"""`losses_at_end`: balls missed, or falls, a step in the last tenth of the steps."""
SPG = online.Options(learner="spg", common_mode="paper")
ALL, ROLLOUT = (dataclasses.replace(SPG, updated=which) for which in ("all", "rollout"))
_CONTINUING = catch.Catch()
World = catch.Catch | cart_pole.CartPole
Build = Callable[[Any, Any], online.Agent]


@dataclasses.dataclass(frozen=True)
class Reading:
    """A world, an agent of a learning rate for it, and what differs from the documented reading."""

    words: str
    options: online.Options = SPG
    world: World = _CONTINUING
    build: Build | None = None

    @property
    def environment(self) -> str:
        """As the paper calls it."""
        return "catch" if isinstance(self.world, catch.Catch) else "cart_pole"

    def agent(self, learning_rate: Any) -> online.Agent:
        """The agent; the learning rate may be traced."""
        if self.build is not None:
            return self.build(self.world, learning_rate)
        return lifetimes.paper_agent(self.world, self.options, learning_rate=learning_rate)

    @property
    def see(self) -> lifetimes.Sight:
        """What the agent sees."""
        return lifetimes.sight(self.world, self.options)


def paper_network(
    world: World, learning_rate: Any, rule: learners.Rule | None = None, critic_cost: float = 1.0
) -> actor_critic.ActorCritic:
    """The documented network with its optimizer; SPG's, if no rule is given."""
    return by_rows.paper_network(
        world.spec.observation_size,
        world.spec.num_actions,
        rule or learners.rule("spg", 1.0),
        actor_critic.Adam(learning_rate, SPG.decay, SPG.epsilon),
        common_mode=SPG.common_mode,
        critic_cost=critic_cost,
    )


def one_step_actor(world: World, learning_rate: Any) -> online.Agent:
    """The actor follows the one-step TD error; the λ-return is the critic's target alone."""
    body = paper_network(world, learning_rate)
    agent = online.agent(body, SPG)

    def learn(state: online.State) -> tuple[online.State, online.Info]:
        zero = jnp.zeros((), state.window.reward.dtype)
        # The body alone goes through: what a branch hands back as it came is copied at every step.
        learnt, info = jax.lax.cond(
            state.time > SPG.window,
            lambda before: update(before, state.window),
            lambda before: (before, online.Info(zero, zero)),
            state.body,
        )
        return state._replace(body=learnt), info

    def update(before: Any, window: online.Window) -> tuple[Any, online.Info]:
        first = jax.tree.map(lambda leaf: leaf[:1], window)
        rest = (window.reward, window.continuation, window.next_value)
        target = returns.lambda_returns(*rest, lambda_=SPG.lambda_, bootstrap=SPG.bootstrap)[:1]
        now = body.outputs(before, first.agent_state)
        decision = learners.Decision(
            agent_state=first.agent_state,
            legal=first.legal,
            action=first.action,
            probability=first.probability,
            return_=first.reward + SPG.bootstrap * first.continuation * first.next_value,
            baseline=now.value,
            weight=jnp.ones(1),
            target=target,
        )
        info = online.Info(policy.entropy(now.logits[0], first.legal[0]), target[0] - now.value[0])
        return body.update(before, decision), info

    return agent._replace(learn=learn)


def critic_model(world: World) -> policy.Model:
    """The paper's network, in which the actor's gradient stops at its head."""
    whole = neural.network(world.spec.observation_size, world.spec.num_actions, critic=True)

    def apply(parameters: Any, features: Any) -> policy.Output:
        still = {
            name: part if name == "actor" else jax.lax.stop_gradient(part)
            for name, part in parameters.items()
        }
        return policy.Output(whole.apply(still, features).logits, whole.apply(parameters, features).value)

    return policy.Model(whole.init, apply)


def critic_torso(world: World, learning_rate: Any) -> online.Agent:
    """The torso learns from the critic alone."""
    adam = actor_critic.Adam(learning_rate, SPG.decay, SPG.epsilon)
    body = actor_critic.dense(critic_model(world), learners.rule("spg", 1.0), adam, common_mode="paper")
    return online.agent(body, SPG)


def two_networks(world: World, learning_rate: Any) -> online.Agent:
    """Actor and critic have a torso each."""
    still = learners.Rule(lambda probabilities, *_: jnp.zeros_like(probabilities), lambda count: 1.0)
    actor = paper_network(world, learning_rate, critic_cost=0.0)
    critic = paper_network(world, learning_rate, still)

    def init(*, key: Any) -> Any:
        return [each.init(key=jax.random.fold_in(key, n)) for n, each in enumerate((actor, critic))]

    def outputs(state: Any, states: Any) -> actor_critic.Outputs:
        logits = actor.outputs(state[0], states).logits
        return actor_critic.Outputs(logits, critic.outputs(state[1], states).value)

    def update(state: Any, decisions: learners.Decision) -> Any:
        return [actor.update(state[0], decisions), critic.update(state[1], decisions)]

    def parameters(state: Any) -> Any:
        return {"actor": actor.parameters(state[0]), "critic": critic.parameters(state[1])}

    return online.agent(actor_critic.ActorCritic(init, outputs, update, parameters), SPG)


def zero_heads(world: World, learning_rate: Any) -> online.Agent:
    """Actor and critic begin at 0: the policy as uniform, the values as those of a world without losses."""
    agent = lifetimes.paper_agent(world, SPG, learning_rate=learning_rate)
    heads = world.spec.num_actions + 2  # the rows of the actions, of the value, and of their biases

    def init(moment: online.Moment, *, key: Any) -> online.State:
        state = agent.init(moment, key=key)
        return state._replace(body=state.body._replace(weights=state.body.weights.at[-heads:].set(0.0)))

    return agent._replace(init=init)


def discounted(world: World, learning_rate: Any) -> online.Agent:
    """Every step multiplies what follows by 0.9, rewards and values alike."""
    options = dataclasses.replace(SPG, bootstrap=1.0)
    return discounting(lifetimes.paper_agent(world, options, learning_rate=learning_rate))


def rollouts_discounted(world: World, learning_rate: Any) -> online.Agent:
    """Both."""
    options = dataclasses.replace(ROLLOUT, bootstrap=1.0)
    return discounting(lifetimes.paper_agent(world, options, learning_rate=learning_rate))


def discounting(agent: online.Agent) -> online.Agent:
    """An agent to which every step is worth 0.9 of one."""

    def act(state: online.State, moment: online.Moment, *, key: Any) -> tuple[online.State, Any]:
        less = moment._replace(continuation=SPG.bootstrap * moment.continuation)
        return agent.act(state, less, key=key)

    return agent._replace(act=act)


def recomputed(world: World, learning_rate: Any) -> online.Agent:
    """Values in the target are those of the network as it is at the update, not as it was on arrival."""
    body = paper_network(world, learning_rate)
    agent = online.agent(body, SPG)

    def learn(state: online.State) -> tuple[online.State, online.Info]:
        window = state.window
        now = jax.lax.map(lambda one: body.outputs(state.body, one[None]).value[0], window.agent_state[1:])
        after, info = agent.learn(state._replace(window=window._replace(next_value=now)))
        return after._replace(window=window), info

    return agent._replace(learn=learn)


_CUT = catch.Catch(horizon=catch.Catch().rows - 1)
READINGS: dict[str, Reading] = {
    "landing_cuts": Reading("a ball that lands ends the return", world=_CUT),
    "bootstrapped_last": Reading(
        "0.9 multiplies the value at the end of the window alone",
        dataclasses.replace(SPG, bootstrapped="last"),
    ),
    "n_step": Reading("a plain 32-step return with 0.9 V at its end", dataclasses.replace(SPG, lambda_=1.0)),
    "no_baseline": Reading("the actor follows G, not G − V", dataclasses.replace(SPG, baseline="none")),
    "epsilon_1e-4": Reading(
        "Adam's ε is 1e-4 (or 1e-8 inside the root)", dataclasses.replace(SPG, epsilon=1e-4)
    ),
    "epsilon_1e-2": Reading("Adam's ε is 1e-2", dataclasses.replace(SPG, epsilon=1e-2)),
    "cut_without_baseline": Reading(
        "a ball that lands ends the return, and the actor follows G",
        dataclasses.replace(SPG, baseline="none"),
        world=_CUT,
    ),
    "discounted": Reading("0.9 multiplies rewards too, at every step", build=discounted),
    "critic_twice": Reading(
        "the critic's loss is the squared error, not half of it", dataclasses.replace(SPG, critic_cost=2.0)
    ),
    "zero_heads": Reading("actor and critic begin at 0", build=zero_heads),
    "recomputed": Reading("values in the target are recomputed at the update", build=recomputed),
    "one_step_actor": Reading(
        "the actor follows the one-step TD error, the critic the λ-return", build=one_step_actor
    ),
    "two_networks": Reading("actor and critic have a network each", build=two_networks),
    # This network is dense, and so sees whole boards, as with ALL.
    "critic_torso": Reading("the torso learns from the critic alone", options=ALL, build=critic_torso),
    "rollouts": Reading("one update for every 32 steps, from all of them", ROLLOUT),
    "rollouts_cut": Reading(
        "one update for every 32 steps, and a ball that lands ends the return", ROLLOUT, world=_CUT
    ),
    "rollouts_discounted": Reading(
        "one update for every 32 steps, and 0.9 multiplies rewards too",
        ROLLOUT,
        build=rollouts_discounted,
    ),
    "rollouts_cart_pole": Reading(
        "one update for every 32 steps, in cart pole", ROLLOUT, world=cart_pole.CartPole()
    ),
    "all_states": Reading("all 32 states of the window are updated after every step", options=ALL),
}


def run(
    folder: records.Path,
    readings: Sequence[str],
    rates: Sequence[float],
    seeds: Sequence[int],
    *,
    cores: int = 1,
    steps: int = STEPS,
) -> list[dict[str, Any]]:
    """All rows in `folder`, after those that were missing have been run."""
    place = pathlib.Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    with files.locked(place, what="study"), executor.workers(cores) as each:
        written = place / "rows.csv"
        rows = table.read(written) if written.exists() else []
        done = {(row["reading"], row["learning_rate"], row["seed"]) for row in rows}
        wanted = [run for run in itertools.product(readings, rates, seeds) if run not in done]
        for count, row in enumerate(each(functools.partial(lived, steps), wanted), 1):
            rows.append(row)
            rows.sort(key=_order)
            records.write_csv(written, rows, COLUMNS)
            words = ", ".join(f"{key} {value}" for key, value in row.items())
            print(f"{count:,} of {len(wanted):,}: {words}", flush=True)
        if rows:
            draw(place / "readings.png", rows)
    return rows


def _order(row: Mapping[str, Any]) -> tuple[int, float, int]:
    return list(READINGS).index(row["reading"]), row["learning_rate"], row["seed"]


def lived(steps: int, run: tuple[str, float, int]) -> dict[str, Any]:
    """The row of one run, `steps` long: of a reading, a learning rate and a seed."""
    name, rate, seed = run
    begin, live = _compiled(name, steps // PIECES)
    life, rewards = begin(jnp.float32(rate), seed), []
    for _ in range(PIECES):
        life, totals = live(jnp.float32(rate), seed, life)
        rewards.append(float(totals.reward))
    figures = {"total_reward": round(sum(rewards)), "losses_at_end": abs(rewards[-1]) / (steps // PIECES)}
    return {"reading": name, "learning_rate": rate, "seed": seed} | figures


@functools.cache
def _compiled(name: str, steps: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The beginning of a life and `steps` of it, for any learning rate and seed."""
    reading = READINGS[name]

    @jax.jit
    def begin(rate: Any, seed: Any) -> lifetimes.Life:
        return lifetimes.begin(reading.world, reading.agent(rate), reading.see, key=jax.random.key(seed))

    @functools.partial(jax.jit, donate_argnums=2)
    def live(rate: Any, seed: Any, life: lifetimes.Life) -> tuple[lifetimes.Life, Any]:
        key = jax.random.key(seed)
        return lifetimes.live(reading.world, reading.agent(rate), reading.see, life, steps, key=key)

    return begin, live


def summary(rows: Sequence[table.Row]) -> list[dict[str, Any]]:
    """The mean over seeds for each reading and learning rate."""
    return [
        {
            "reading": name,
            "learning_rate": rate,
            "seeds": len(here),
            "mean": float(np.mean([r["total_reward"] for r in here])),
        }
        for (name, rate), here in table.groups(rows, ["reading", "learning_rate"]).items()
    ]


def best_rates(rows: Sequence[table.Row]) -> str:
    """The README's table: a row for each reading, with its best learning rate and the paper's."""
    shown = []
    for (name,), here in table.groups(summary(rows), ["reading"]).items():
        best = max(here, key=lambda row: row["mean"])
        rate = reproduction.PAPER_BEST[READINGS[name].environment]
        # Catch's is printed with two places more than the list of rates has.
        paper = [row["mean"] for row in here if math.isclose(row["learning_rate"], rate, rel_tol=0.01)]
        shown.append(
            {
                "words": READINGS[name].words,
                "name": f"`{name}`",
                "rates": len(here),
                "seeds": min(row["seeds"] for row in here),
                "best": f"{best['learning_rate']:f}".rstrip("0"),
                "mean": f"{best['mean']:,.0f}".replace("-", "−"),
                "paper": f"{paper[0]:,.0f}".replace("-", "−") if paper else "",
            }
        )
    return table.markdown(
        shown,
        {
            "reading": "{name}",
            "what it changes": "{words}",
            "rates": "{rates}",
            "seeds": "{seeds}",
            "best rate": "{best}",
            "reward there": "{mean}",
            "reward at the paper's rate": "{paper}",
        },
    )


def draw(path: records.Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """A panel for each reading: means over learning rates, beside those of the documented one."""
    drawn = table.groups(summary(rows), ["reading"])
    columns = min(4, len(drawn))
    lines = -(-len(drawn) // columns)
    with figures.figure(path, width=2.4 * columns + 0.6, height=1.7 * lines + 1) as page:
        panels = page.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for axes in panels[len(drawn) :]:
            axes.set_axis_off()
        for axes, ((name,), here) in zip(panels, drawn.items(), strict=False):
            environment = READINGS[name].environment
            documented = table.read(PAPER / environment / "learning_rates.csv")
            axes.axvline(reproduction.PAPER_BEST[environment], color="grey", linewidth=0.8)
            for line, label, looks in (
                (documented, "as documented", {"color": "grey", "linestyle": ":"}),
                (here, "this reading", figures.look(0)._asdict() | {"markersize": 3}),
            ):
                rates, means = ([row[key] for row in line] for key in ("learning_rate", "mean"))
                axes.plot(rates, means, label=label, **looks)
            axes.set_xscale("log")
            axes.set_title(name, fontsize="small")
            axes.tick_params(labelsize="small")
        page.suptitle("SPG over learning rates; the vertical line is at the paper's best", fontsize="medium")
        page.supylabel("accumulated reward, mean over seeds", fontsize="small")
        figures.legend_below(page, *panels[0].get_legend_handles_labels(), ncols=2)


def main(_: Sequence[str]) -> None:
    """Runs what flags say."""
    given = flags.FLAGS
    rates = [float(rate) for rate in given.rates] or list(reproduction.PAPER_RATES)
    readings, cores = given.reading or list(READINGS), executor.available(given.cores)
    print(best_rates(run(given.output_dir, readings, rates, range(given.seeds), cores=cores)))


if __name__ == "__main__":
    flags.DEFINE_multi_enum("reading", [], list(READINGS), "Readings; all of them by default.")
    flags.DEFINE_list("rates", [], "Learning rates; the paper's 28 by default.")
    flags.DEFINE_integer("seeds", 5, "Seeds 0, 1, … of each.", lower_bound=1)
    flags.DEFINE_integer("cores", None, "Processes, one for each core; all cores by default.", lower_bound=1)
    flags.DEFINE_string("output_dir", "runs/readings", "The folder for rows and figure.")
    logging.set_verbosity(logging.WARNING)  # JAX tells of every backend that is not there
    app.run(main)
