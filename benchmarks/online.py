"""Speed of the online actor-critic: a full agent, beside a Python loop and beside its bare arithmetic.

    python benchmarks/online.py

Times of one core are CPU time, the best of several repeats taken in turn, so that other work on the machine
counts little; two cores are compared with one by the clock.
"""

import functools
import time

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
from bsuite.environments import catch as bsuite_catch
from pohp_neurd.games import cart_pole, catch

from pohp_neurd import directions, learners, neural, optimizers
from pohp_neurd.experiment import executor, reproduction, single_agent
from pohp_neurd.online import actor_critic, host, lifetimes
from pohp_neurd.online import agent as online

OPTIONS = online.Options("neurd_cix", common_mode="dropped")
RATE = 3e-5
PAPER_RATE = reproduction.PAPER_BEST["catch"]
"""At which most units soon die; a row of weights behind a dead one costs nothing."""
STEPS = 1_000
REPEATS = 6
ONE_THREAD = single_agent.ONE_THREAD


def microseconds(calls, steps, clock=time.process_time):
    """The best time per step of each of `calls`, repeated in turn."""
    best = dict.fromkeys(calls, np.inf)
    for call in calls.values():
        call()
    for _ in range(REPEATS):
        for name, call in calls.items():
            start = clock()
            call()
            best[name] = min(best[name], (clock() - start) / steps[name] * 1e6)
    return best


def scan_agent(world, num_runs=1, steps=STEPS, rate=RATE, before=0):
    """The full agent: `num_runs` runs in one compiled call, after `before` calls."""
    runs = lifetimes.Runs(
        np.arange(num_runs, dtype=np.int32),
        np.full(num_runs, rate, np.float32),
        np.ones(num_runs, np.float32),
    )
    begin = jax.jit(lambda runs: lifetimes.begin_all(world, OPTIONS, runs), compiler_options=ONE_THREAD)
    live = jax.jit(
        lambda runs, lives: lifetimes.live_all(world, OPTIONS, runs, lives, steps),
        donate_argnums=1,
        compiler_options=ONE_THREAD,
    )
    held = [begin(runs)]

    def call():
        held[0], _ = jax.block_until_ready(live(runs, held[0]))

    for _ in range(before):
        call()
    return call


def dense_agent(world):
    """The same agent with its network dense and its gradients by autodiff, in a scan."""
    spec = world.spec
    model = neural.network(spec.observation_size, spec.num_actions, critic=True)
    rule = learners.rule(OPTIONS.learner, 1.0)
    body = actor_critic.dense(model, rule, actor_critic.Adam(RATE), common_mode=OPTIONS.common_mode)
    agent, key = online.agent(body, OPTIONS), jax.random.key(0)
    scan = jax.jit(
        lambda life: lifetimes.live(world, agent, world.observation, life, STEPS, key=key)[0],
        donate_argnums=0,
        compiler_options=ONE_THREAD,
    )
    held = [lifetimes.begin(world, agent, world.observation, key=key)]

    def call():
        held[0] = jax.block_until_ready(scan(held[0]))

    return call


def python_loop(environment, one_call):
    """The same agent, stepped from Python: `act` and `learn` compiled, in one call or in two."""
    agent = online.with_network(
        environment.observation_size, environment.num_actions, OPTIONS, learning_rate=RATE
    )
    legal = jnp.ones(environment.num_actions, bool)
    key = jax.random.key(0)

    def act_only(state, moment):
        return agent.act(state, moment, key=lifetimes.step_keys(key, state.time)[0])

    def act_and_learn(state, moment):
        state, action = act_only(state, moment)
        return agent.learn(state)[0], action

    options = {"donate_argnums": 0, "compiler_options": ONE_THREAD}
    act = jax.jit(act_and_learn if one_call else act_only, **options)
    learn = (lambda state: state) if one_call else jax.jit(lambda state: agent.learn(state)[0], **options)

    def moment(arrival):
        return online.Moment(
            arrival.observation, legal, np.float32(arrival.reward), np.float32(arrival.continuation)
        )

    held = [environment.reset()]
    held.append(agent.init(moment(held[0]), key=key))

    def call():
        arrival, state = held
        for _ in range(STEPS):
            state, action = act(state, moment(arrival))
            arrival = environment.step(int(action))
            state = learn(state)
        held[:] = arrival, jax.block_until_ready(state)

    return call


def bare(inputs, actions, optimizer):
    """The limit: forward, forward-backward and optimizer on constant data, and nothing else.

    Not quite nothing: the value that acting computes goes into the target, or XLA would drop it.
    """
    model = neural.network(inputs, actions, critic=True)
    learner = learners.learner(model.apply, directions.neurd_cix(1.0), optimizer, common_mode="dropped")
    seen, learnt = np.random.default_rng(0).normal(size=(2, inputs)).astype(np.float32)

    def step(state, _):
        value = model.apply(state.parameters, seen).value
        decision = learners.Decision(
            agent_state=learnt[None],
            legal=np.ones((1, actions), bool),
            action=np.zeros(1, np.int32),
            probability=jnp.full(1, 0.4),
            return_=value[None] - 1,
            target=value[None] - 1,
        )
        return learner.update(state, decision)[0], None

    scan = jax.jit(
        lambda state: jax.lax.scan(step, state, length=STEPS)[0],
        donate_argnums=0,
        compiler_options=ONE_THREAD,
    )
    held = [learner.init(model.init(key=jax.random.key(0)))]

    def call():
        held[0] = jax.block_until_ready(scan(held[0]))

    return call


def timed_advance(config, lane):
    start = time.process_time()
    advanced, _ = single_agent.advance(config, lane)
    return advanced, time.process_time() - start


def two_cores():
    """Seconds of eight runs in one process, and of four in each of two: by the clock, and of CPU time.

    The CPU time is that of the busiest process: what the clock would show if nobody else used the cores.
    """
    config = single_agent.Config(seeds=8, num_steps=4 * STEPS, interval=4 * STEPS, common_mode="dropped")
    work = functools.partial(timed_advance, config)
    clock, cpu = {}, {}
    with executor.workers(1) as one, executor.workers(2) as two:
        pools = {1: one, 2: two}
        begun = {
            count: [
                lane
                for lane, _ in pools[count](
                    work, [(part, None) for part in single_agent.deal(config.runs(), count)]
                )
            ]
            for count in pools
        }
        for repeat in range(REPEATS + 1):
            for count, pool in pools.items():
                start = time.perf_counter()
                busiest = max(seconds for _, seconds in pool(work, begun[count]))
                if repeat:  # the first one compiles
                    clock[count] = min(clock.get(count, np.inf), time.perf_counter() - start)
                    cpu[count] = min(cpu.get(count, np.inf), busiest)
    return clock, cpu


def show(text, value, unit, bar=None, holds=None):
    verdict = "" if bar is None else f"   bar {bar}: {'held' if holds else 'MISSED'}"
    print(f"  {text:<62}{value:8.2f} {unit}{verdict}", flush=True)


def main():
    executor.use_one_core()
    hosts = {
        "catch": lambda: host.DmEnv(
            bsuite_catch.Catch(seed=0), reward=lambda r: min(r, 0.0), continuing=True
        ),
        "cart pole": lambda: host.Gymnasium(
            gymnasium.make("CartPole-v1", sutton_barto_reward=True), seed=0, continuing=True
        ),
    }
    worlds = {"catch": catch.Catch(), "cart pole": cart_pole.CartPole()}
    for name, world in worlds.items():
        inputs, actions = world.spec.observation_size, world.spec.num_actions
        plain = optax.chain(
            optax.scale_by_rms(decay=0.999, eps=1e-8, eps_in_sqrt=False, bias_correction=True),
            optax.scale(-RATE),
        )
        fused = optimizers.adam_without_momentum(RATE)
        calls = {
            "agent": scan_agent(world),
            "agent, paper's rate": scan_agent(world, rate=PAPER_RATE, before=50),
            "dense agent": dense_agent(world),
            "two calls": python_loop(hosts[name](), one_call=False),
            "one call": python_loop(hosts[name](), one_call=True),
            "bare": bare(inputs, actions, plain),
            "bare, fused": bare(inputs, actions, fused),
        }
        times = microseconds(calls, dict.fromkeys(calls, STEPS))
        agent = times["agent"]
        print(f"{name}: one core")
        show("full agent in a scan", agent, "µs a step")
        show("full agent in a scan", 1e6 / agent, "steps/s")
        late = times["agent, paper's rate"]
        show(f"    the same at a learning rate of {PAPER_RATE:g} after 50,000 steps", late, "µs a step")
        show("the same agent, dense and by autodiff, over it", times["dense agent"] / agent, "x")
        ratio = times["two calls"] / agent
        show("(a) Python loop, compiled act and update, over the agent", ratio, "x", ">= 2", ratio >= 2)
        show("    Python loop, act and update in one compiled call", times["one call"] / agent, "x")
        ratio = agent / times["bare"]
        show("(b) agent over bare arithmetic, dense, optax's Adam", ratio, "x", "<= 1.3", ratio <= 1.3)
        show("    agent over bare arithmetic, dense, our Adam", agent / times["bare, fused"], "x")
    counts = (1, 4, 16, 64)
    calls = {count: scan_agent(worlds["catch"], count, steps=STEPS // 4) for count in counts}
    times = microseconds(calls, {count: count * STEPS // 4 for count in counts})
    for count in counts:
        show(f"(d) catch: {count} seeds in one call", times[count], "µs a step")
    ratio = max(times.values()) / times[1]
    show("    worst over one seed", ratio, "x", "<= 1.3", ratio <= 1.3)
    if executor.available(None) >= 2:
        clock, cpu = two_cores()
        ratio = clock[1] / clock[2]
        show("(c) catch: two cores over one, steps/s by the clock", ratio, "x", ">= 1.7", ratio >= 1.7)
        show("    the same by CPU time, as if nobody else used the cores", cpu[1] / cpu[2], "x")


if __name__ == "__main__":
    main()
