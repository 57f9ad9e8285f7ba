"""Trains two NeuRD-CIX agents in a plain OpenSpiel loop, on Kuhn poker or any other game with turns.

Prints NashConv of their joint policy as it falls, and ends with one line of JSON. --checkpoint_dir keeps the
agents, also on Ctrl-C: run it again with the same folder and training goes on from there.

    python run_scripts/agent_loop.py --network=table
    python run_scripts/agent_loop.py --game=leduc_poker --learner=spg --episodes=50000
"""

import contextlib
import json
from typing import Any

from pohp_neurd import files
from pohp_neurd.experiment import command_line, configs, run

command_line.define(configs.AgentLoop)


@command_line.told
def main(_: list[str]) -> None:
    """Trains, reports, saves."""
    config = command_line.config(configs.AgentLoop)
    command_line.opening(
        f"Playing {config.episodes:,} episodes of {config.game}: loading and compiling take some seconds"
    )
    from open_spiel.python import rl_environment

    from pohp_neurd import openspiel

    game = openspiel.load_game(config.game)
    if not game.get_type().provides_information_state_tensor:
        raise ValueError(f"{config.game} gives no information-state tensors, which the agents need.")
    tree = openspiel.compile_game(game)
    sizes = game.information_state_tensor_size(), game.num_distinct_actions()
    settings = {name: getattr(config, name) for name in ("learner", "exploration", "network", "batch_size")}
    agents = [
        openspiel.NeuRDCIX(player, *sizes, seed=config.seed * game.num_players() + player, **settings)
        for player in range(game.num_players())
    ]
    env = rl_environment.Environment(game)
    env.seed(config.seed)
    joint = openspiel.JointPolicy(game, agents, use_observation=False)
    every = max(1, config.episodes // config.reports)
    kept = config.checkpoint_dir

    def nash_conv() -> float:
        return float(openspiel.nash_conv(tree, joint.to_tabular()))

    def play(state: None, episodes: int) -> None:
        for _ in range(episodes):
            time_step = env.reset()
            while not time_step.last():
                output = agents[time_step.observations["current_player"]].step(time_step)
                time_step = env.step([output.action])
            for agent in agents:
                agent.step(time_step)

    def report(state: None, done: int, bar: Any) -> None:
        if done % every == 0 and bar is not None:
            print(f"{done:8,} episodes   NashConv {nash_conv():.4f}")

    def save(state: None, done: int) -> str:
        for agent in agents if kept else ():
            agent.save(kept)
        where = f"from {kept}" if kept else "anew, without --checkpoint_dir"
        return f"{agents[0].episode_counter:,} episodes; the same command goes on {where}"

    pace = run.Pace(config.episodes, every, checkpoint_every=config.episodes, unit="episode")
    alone = files.locked(kept, what="loop") if kept else contextlib.nullcontext()
    with alone, run.watched() as asked:
        for agent in agents:
            if kept and agent.has_checkpoint(kept):
                agent.restore(kept)
        run.loop(pace, play, None, 0, config.episodes, asked=asked, evaluate=report, save=save)
    command_line.closing(
        f"The agents are in {kept}: the same command trains them further."
        if kept
        else "The agents were not saved: --checkpoint_dir=FOLDER saves them."
    )
    print(json.dumps({"episodes": agents[0].episode_counter, "nash_conv": nash_conv()}))


if __name__ == "__main__":
    command_line.run(main, __doc__)
