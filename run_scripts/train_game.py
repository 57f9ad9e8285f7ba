"""Trains a policy profile by self-play in an OpenSpiel game, with NashConv in the loop.

    python run_scripts/train_game.py --game=leduc_poker
    python run_scripts/train_game.py --game=leduc_poker --policy=neural --output_dir=runs/leduc_neural
    python run_scripts/train_game.py --game="kuhn_poker(players=3)" --update=expected --output_dir=runs/kuhn3
    python run_scripts/train_game.py --game=phantom_ttt --policy=neural --output_dir=runs/phantom

Writes config.json, metrics.csv, checkpoints/ and curve.png into --output_dir, and ends with one line of JSON.
Ctrl-C saves a checkpoint; the same command with --resume goes on from it.
"""

import json

import command_line
from absl import flags

from pohp_neurd.experiment import game_config

TOPICS = {
    "What is trained": {
        "game": "An OpenSpiel game, with parameters as OpenSpiel writes them.",
        "policy": "tabular or neural.",
        "learner": "spg, neurd or neurd_cix.",
        "update": "sampled (from episodes) or expected (from exact values, on small games).",
        "play": "compiled, live, or auto: compiled if the game has at most --max_histories histories.",
        "max_histories": "See --play.",
        "seed": "The seed of everything random.",
    },
    "How long": {
        "episodes": "Episodes of sampled updates.",
        "iterations": "Iterations of expected updates.",
        "batch_size": "Episodes of one update.",
        "eval_every": "Episodes, or iterations, between two evaluations.",
        "checkpoint_every": "Evaluations between two checkpoints.",
    },
    "The update": {
        "exploration": "η of NeuRD-CIX in [0, 1]: 0 is NeuRD.",
        "step_size": "α, for returns scaled to [-1, 0]; for networks the optimizer's learning rate.",
        "step_size_decay": "p of α / (1 + t / decay_start)^p at update t.",
        "cooling": "c of the factor (1 - t / T)^c on α, with T the updates of the run.",
        "exploration_decay": "The same power for η.",
        "decay_start": "See --step_size_decay; in updates.",
        "baseline": "Subtract a learned state value from returns.",
        "average_over": "Of tables: a state's direction is a mean over its visits, or over episodes.",
        "weights": "Of expected updates: counterfactual or realization.",
        "alternating": "Update one agent at a time.",
    },
    "Regularisation and averages": {
        "magnet_strength": "Pull to the magnet, for returns scaled to [-1, 0]; 0 for none.",
        "magnet_decay": "Its power of decay over time.",
        "magnet_speed": "c: the magnet moves c / decay_start of its way to the policy; 0: entropy.",
        "magnet_speed_decay": "p of its factor (1 + t / decay_start)^-p.",
        "threshold": "No centred logit is pushed beyond this; for none, leave it out.",
        "entropy_cost": "Pull to the uniform policy, for returns scaled to [-1, 0]; 0 for none.",
        "average_power": "p of the weight t^p in the average policy: 0 uniform, 1 linear.",
        "average_forgetting": "Geometric weights: what was before fades by this at each update.",
    },
    "Networks": {
        "hidden_layers": "Units of each hidden layer.",
        "optimizer": "adam, adam_without_momentum (the paper's) or sgd.",
        "shared": "One network for all seats; --noshared for one each.",
        "common_mode": "dropped: directions centred over the actions; or paper.",
    },
}
_RUN = {**command_line.RESUME, "tensorboard": "Also write TensorBoard event files."}
_KINDS = {
    "tabular": ("compiled", "tabular", "sampled"),
    "tabular, expected": ("compiled", "tabular", "expected"),
    "neural": ("compiled", "neural", "sampled"),
    "live": ("live", "neural", "sampled"),
}
_DEPENDS = {
    name: ", ".join(f"{game_config.DEFAULTS[kind][name]:g} ({what})" for what, kind in _KINDS.items())
    for name in game_config.DEFAULTS["live", "neural", "sampled"]
} | {
    "episodes": "10 million (tabular), 60 million (neural), 200 thousand (live)",
    "iterations": "50,000 (tabular), 5,000 (neural)",
    "eval_every": "a thirtieth of the run",
}

command_line.define(game_config.Config, TOPICS)
command_line.define_run("runs/game", _RUN)


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into a config and runs it."""
    config = command_line.config(game_config.Config, TOPICS)
    from pohp_neurd.experiment import game_run

    chosen = {name: flags.FLAGS[name].value for name in ("resume", "overwrite", "tensorboard")}
    figures = game_run.run(config, flags.FLAGS.output_dir, **chosen)
    print(f"NashConv over time: {figures['curve']}")
    print(json.dumps(figures))


if __name__ == "__main__":
    command_line.run(main, __doc__, {**TOPICS, "The run": _RUN}, _DEPENDS)
