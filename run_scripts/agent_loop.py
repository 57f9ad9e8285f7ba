"""Two NeuRD-CIX agents in a plain OpenSpiel loop, on Kuhn poker or any other game with turns.

Prints NashConv of their joint policy as it falls, and ends with one line of JSON. --checkpoint_dir keeps the
agents, also on Ctrl-C: run it again with the same folder and training goes on from there.

    python run_scripts/agent_loop.py --network=table
    python run_scripts/agent_loop.py --game=leduc_poker --learner=spg --episodes=50000
"""

import contextlib
import dataclasses
import json

import command_line

from pohp_neurd import checks, files
from pohp_neurd.experiment import interruption, run_folder

TOPICS = {
    "What is trained": {
        "game": "An OpenSpiel game, small enough for exact NashConv.",
        "learner": "spg, neurd or neurd_cix.",
        "exploration": "η of NeuRD-CIX, in [0, 1].",
        "network": "What holds the policy: mlp or table.",
        "batch_size": "Episodes of one update.",
        "seed": "The seed of the agents and of chance.",
    },
    "How long": {
        "episodes": "Episodes in all.",
        "reports": "How often NashConv is printed.",
        "checkpoint_dir": "Agents are restored from here, and saved.",
    },
}


@dataclasses.dataclass(frozen=True)
class Config:
    """The agents and their loop; what is theirs alone they check themselves."""

    game: str = "kuhn_poker"
    learner: str = "neurd_cix"
    exploration: float = 0.1
    network: str = "mlp"
    batch_size: int = 32
    seed: int = 0
    episodes: int = 20_000
    reports: int = 10
    checkpoint_dir: str = ""

    def __post_init__(self) -> None:
        checks.one_of("learner", self.learner, ("spg", "neurd", "neurd_cix"))
        checks.one_of("network", self.network, ("mlp", "table"))
        checks.in_unit_interval("exploration", self.exploration)
        checks.seed("seed", self.seed)
        for name in ("batch_size", "episodes", "reports"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, but is {getattr(self, name)}.")
        if self.batch_size > self.episodes:
            raise ValueError(
                f"batch_size must be at most the {self.episodes} episodes, or nothing is learnt, but is "
                f"{self.batch_size}."
            )
        if self.checkpoint_dir:
            run_folder.check_writable(self.checkpoint_dir)


command_line.define(Config, TOPICS)


@command_line.told
def main(_: list[str]) -> None:
    """Trains, reports, saves."""
    config = command_line.config(Config, TOPICS)
    import tqdm
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
    kept = (
        files.locked(config.checkpoint_dir, what="loop")
        if config.checkpoint_dir
        else contextlib.nullcontext()
    )
    with kept, interruption.watched() as asked:
        for agent in agents:
            if config.checkpoint_dir and agent.has_checkpoint(config.checkpoint_dir):
                agent.restore(config.checkpoint_dir)
        for episode in tqdm.tqdm(range(1, config.episodes + 1), disable=None, leave=False):
            time_step = env.reset()
            while not time_step.last():
                output = agents[time_step.observations["current_player"]].step(time_step)
                time_step = env.step([output.action])
            for agent in agents:
                agent.step(time_step)
            if asked() is not None:
                break
            if episode % every == 0:
                print(f"{episode:8,} episodes   NashConv {openspiel.nash_conv(tree, joint.to_tabular()):.4f}")
        if config.checkpoint_dir:
            for agent in agents:
                agent.save(config.checkpoint_dir)
        number, done = asked(), agents[0].episode_counter
        if number is not None:
            where = (
                f"from {config.checkpoint_dir}" if config.checkpoint_dir else "anew, without --checkpoint_dir"
            )
            raise interruption.Interrupted(number, f"{done:,} episodes; the same command goes on {where}")
    nash_conv = float(openspiel.nash_conv(tree, joint.to_tabular()))
    print(json.dumps({"episodes": done, "nash_conv": nash_conv}))


if __name__ == "__main__":
    command_line.run(main, __doc__, TOPICS, {"checkpoint_dir": "none"})
