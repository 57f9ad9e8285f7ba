"""Small runs of every way to train, and whether they still come out to the bit as recorded in goldens.json.

    python tests/goldens.py                      run all again; exit code 1 if anything differs
    python tests/goldens.py --only=bandit,sweep_bandit
    python tests/goldens.py --record             write goldens.json anew; with --only, those alone

A golden is some commands, one after the other, in a folder of their own. Recorded are what they print, the
cells of their tables as text, and of every array of their newest checkpoints a digest and a few values.
Times, configurations and pictures are left out. Machines differ in the last bits: record where you compare.
"""

import argparse
import contextlib
import csv
import hashlib
import itertools
import json
import os
import pathlib
import string
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "tests" / "goldens.json"
MOST_ROWS = 12  # longer columns are recorded as a digest and their last cell
PROBES = 4  # values of an array beside its digest, which tell how far a changed one is off
Record = dict[str, str]  # of each thing its entries, with tabs between

SNIPPETS = {
    "FORGET": """import glob, os  # the newest checkpoint, as if the run had been killed before it
_, _, *newest = sorted(glob.glob("run/checkpoints/step_*"))
os.unlink(newest[0]), os.unlink(newest[1])
""",
    "SOLVER": """
from pohp_neurd import checkpoint, openspiel
for name, memory in (("kuhn_poker", None), ("leduc_poker", None), ("kuhn_poker", "observation")):
    for update in ("expected", "sampled"):
        world = openspiel.compile_game(name, agent_state=memory)
        solver = openspiel.NeuRDCIXSolver(world, update=update, seed=3)
        solver.evaluate_and_update_policy()
        solver.evaluate_and_update_policy(20)
        for which in ("current",) if memory else ("current", "average"):
            table = openspiel.table_of(openspiel.compile_game(name), getattr(solver, which + "_policy")())
            checkpoint.save(f"{name}_{memory}_{update}_{which}", 0, table)
            print(name, memory, update, which, solver.nash_conv(which))
""",
    "HOST": """
import gymnasium
from bsuite.environments import catch
from pohp_neurd import checkpoint, online
from pohp_neurd.online import host
options = online.Options("neurd_cix", common_mode="dropped", window=4)
balance = gymnasium.make("CartPole-v1", sutton_barto_reward=True)
ball = host.DmEnv(catch.Catch(seed=3), reward=lambda reward: min(reward, 0.0), continuing=True)
for name, world in {"gymnasium": host.Gymnasium(balance, seed=1), "dm_env": ball}.items():
    played = host.train(world, options, 150, learning_rate=1e-3, exploration=0.5, torso=(8, 8), seed=2)
    checkpoint.save(name, 0, played)
""",
}
FLAGS = {
    "GAME": "train_game --output_dir=run --checkpoint_every=1 --game",
    "GOOFSPIEL": "goofspiel(imp_info=True,num_cards=3,points_order=descending)",
    "TABLE": "--episodes=4096 --batch_size=256 --eval_every=1024 --seed=1",
    "EXPECTED": "--update=expected --iterations=40 --eval_every=10",
    "NETWORK": "--policy=neural --hidden_layers=16,16 --episodes=2048 --batch_size=256 --eval_every=512",
    "EXACT_NETWORK": "--policy=neural --hidden_layers=16 --update=expected --iterations=12 --eval_every=3",
    # Live play trains networks alone, so that there is no live table.
    "LIVE": "--play=live --policy=neural --hidden_layers=16 --episodes=256 --batch_size=32 --eval_every=64",
    "SINGLE": "train_single_agent --output_dir=run --checkpoint_every=1 --cores=1 --width=16 --num_steps=400 "
    "--interval=100",
    "CART_POLE": "--environment=cart_pole --common_mode=dropped --seeds=2",
    "LOOP": "agent_loop --episodes=200 --batch_size=20 --reports=2 --checkpoint_dir=run",
    "SWEEP": "sweep --output_dir=run --cores=1 --script",
    "GAMES": "@game=kuhn_poker @episodes=1024 @batch_size=128 @exploration=0,0.1",
    "CATCH": "@environment=catch @common_mode=paper @num_steps=200 @interval=100 @width=16 "
    "@learning_rate=0.001 @seed=0:2",
    "BANDIT": "@problem=adaptive,switching,shifting_rock_paper_scissors,kuhn_learning @horizon=100 @runs=10",
}
GOLDENS = """
table_kuhn: $GAME=kuhn_poker $TABLE; evaluate --checkpoint=run --use=current --opponent=uniform
table_leduc: $GAME=leduc_poker $TABLE
table_spg_without_magnet: $GAME=kuhn_poker $TABLE --learner=spg --magnet_strength=0
table_neurd_anchored: $GAME=kuhn_poker $TABLE --learner=neurd --magnet_speed=0 --magnet_decay=0.3
table_options: $GAME=leduc_poker $TABLE --alternating --average_over=episodes --exploration_decay=0.5
    --average_forgetting=0.01 --nobaseline
table_three_players: $GAME=kuhn_poker(players=3) $TABLE
table_simultaneous: $GAME=$GOOFSPIEL $TABLE
table_resumed: $GAME=kuhn_poker $TABLE; FORGET; $GAME=kuhn_poker $TABLE --resume
expected_kuhn: $GAME=kuhn_poker $EXPECTED
expected_leduc: $GAME=leduc_poker $EXPECTED
expected_alternating: $GAME=kuhn_poker $EXPECTED --alternating --weights=realization --average_power=0
expected_spg: $GAME=leduc_poker $EXPECTED --learner=spg --magnet_speed=0
expected_cix_three_players: $GAME=kuhn_poker(players=3) $EXPECTED --exploration=0.1 --exploration_decay=0.5
expected_simultaneous: $GAME=$GOOFSPIEL $EXPECTED
expected_resumed: $GAME=kuhn_poker $EXPECTED; FORGET; $GAME=kuhn_poker $EXPECTED --resume
network_kuhn: $GAME=kuhn_poker $NETWORK
network_leduc: $GAME=leduc_poker $NETWORK
network_separate: $GAME=kuhn_poker $NETWORK --noshared --average_forgetting=0.1 --magnet_strength=0
network_spg: $GAME=kuhn_poker $NETWORK --learner=spg --optimizer=adam --alternating --noshared --nobaseline
network_neurd: $GAME=kuhn_poker $NETWORK --learner=neurd --optimizer=sgd --common_mode=paper
network_anchored: $GAME=kuhn_poker(players=3) $NETWORK --magnet_speed=0 --exploration_decay=0.5
network_simultaneous: $GAME=$GOOFSPIEL $NETWORK
network_resumed: $GAME=kuhn_poker $NETWORK; FORGET; $GAME=kuhn_poker $NETWORK --resume
network_expected: $GAME=kuhn_poker $EXACT_NETWORK
network_expected_separate: $GAME=kuhn_poker $EXACT_NETWORK --noshared --alternating --weights=realization
live: $GAME=kuhn_poker $LIVE; evaluate --checkpoint=run --episodes=200 --response_updates=2 --max_histories=1
live_separate: $GAME=leduc_poker $LIVE --noshared --learner=spg --nobaseline
live_simultaneous: $GAME=$GOOFSPIEL $LIVE --magnet_speed=0 --common_mode=paper
live_resumed: $GAME=kuhn_poker $LIVE; FORGET; $GAME=kuhn_poker $LIVE --resume
catch: $SINGLE --seeds=2 --common_mode=paper
catch_options: $SINGLE --seeds=1 --updated=all --probability=update --bootstrapped=last --common_mode=dropped
catch_spg: $SINGLE --learner=spg --common_mode=paper --baseline=none --learning_rate=0.001,0.01 --seeds=1
catch_neurd: $SINGLE --learner=neurd --common_mode=dropped --epsilon=0.01 --horizon=20 --seeds=2
catch_swaps: $SINGLE --common_mode=paper --swap_every=100 --exploration=0.1,1 --exploration_decay=0.5
    --seeds=1
catch_resumed: $SINGLE --seeds=2 --common_mode=paper; FORGET; $SINGLE --seeds=2 --common_mode=paper --resume
cart_pole: $SINGLE $CART_POLE
cart_pole_spg: $SINGLE --environment=cart_pole --learner=spg --common_mode=paper --horizon=50 --seeds=1
cart_pole_resumed: $SINGLE $CART_POLE; FORGET; $SINGLE $CART_POLE --resume
bandit: bandit --output_dir=run --horizon=200 --seeds=20 --learner=hedge_fixed
reproduce_paper: reproduce_paper --output_dir=run --scale=smoke --environment=catch --cores=1
agent_loop: $LOOP; $LOOP
agent_loop_neurd: $LOOP --learner=neurd
agent_loop_table: $LOOP --network=table --learner=spg --game=leduc_poker
sweep_train_game: $SWEEP=train_game $GAMES @seed=0:1; $SWEEP=train_game $GAMES @seed=0:2
sweep_train_single_agent: $SWEEP=train_single_agent $CATCH @exploration=0,1;
    $SWEEP=train_single_agent $CATCH @learner=spg; summarise --input=run/results.csv --against=learner=spg
sweep_bandit: $SWEEP=bandit $BANDIT @learner=regret_matching_plus @seed=0:2
solver: SOLVER
host: HOST
"""


def goldens() -> dict[str, list[list[str]]]:
    """The commands of each: a script and its flags, or the name of a snippet."""
    text = string.Template(GOLDENS.strip().replace("\n    ", " ")).substitute(FLAGS).replace("@", "--sweep=")
    lines = (line.split(": ", 1) for line in text.splitlines())
    return {name: [each.split() for each in commands.split("; ")] for name, commands in lines}


def run(commands: list[list[str]]) -> Record:
    """What the commands print and leave; a RuntimeError where one of them fails."""
    record: Record = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for index, (what, *flags) in enumerate(commands, start=1):
            line = ["-c", SNIPPETS[what]] if what in SNIPPETS else [f"{ROOT}/run_scripts/{what}.py", *flags]
            done = subprocess.run([sys.executable, *line], cwd=folder, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"command {index} fails: {done.stderr.strip()[-500:]}")
            lines = [line for line in done.stdout.splitlines() if not line.endswith(" …")]  # openings
            figures = json.loads(lines.pop()) if lines and lines[-1].startswith("{") else {}
            record |= {f"stdout {index}": joined(lines)} if lines else {}
            figures.pop("seconds", None)
            record |= {f"stdout {index} {key}": json.dumps(value) for key, value in figures.items()}
        for file in sorted(folder.rglob("*.csv")):
            if "runs" not in file.parts:  # those of a sweep stand in its curves.csv
                header, *rows = csv.reader(file.read_text(encoding="utf-8").splitlines())
                for title, *cells in zip(header, *rows, strict=True):
                    if title != "seconds":
                        record[f"{file.relative_to(folder)} {title}"] = joined(cells)
        for place in sorted({file.parent for file in folder.rglob("step_*.json")}):
            record |= arrays(str(place.relative_to(folder)), max(place.glob("step_*.json")))
    return record


def arrays(name: str, manifest: pathlib.Path) -> Record:
    """Every array of a checkpoint, by its path in the tree that was saved."""
    leaves, found = json.loads(manifest.read_text(encoding="utf-8"))["leaves"], {}
    with np.load(manifest.with_suffix(".npz"), allow_pickle=False) as file:
        for leaf, array in zip(leaves, [file[key] for key in sorted(file.files)], strict=True):
            places = np.unique(np.linspace(0, max(0, array.size - 1), PROBES).astype(int))
            probes = [str(each) for each in array.ravel()[places[: array.size]]]
            about = [f"{array.dtype}{list(array.shape)}", digest(array.tobytes()), *probes]
            found[f"{name} {leaf['name']}"] = joined(about)
    return found


def joined(cells: list[str]) -> str:
    whole = "\t".join(cells)
    return whole if len(cells) <= MOST_ROWS else f"{len(cells)} rows, {digest(whole.encode())}\t{cells[-1]}"


def digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()[:16]


def differences(old: Record, new: Record) -> list[str]:
    """One line for everything that is not as it was."""
    told = [f"{key} is new" for key in new if key not in old]
    for key, was in old.items():
        if key not in new:
            like = [each for each in new if each not in old and new[each] == was]
            told.append(f"{key} is gone" + (f"; the same stands in {like[0]}" if like else ""))
        elif was != new[key]:
            pairs = enumerate(itertools.zip_longest(was.split("\t"), new[key].split("\t"), fillvalue="-"))
            changed, apart = [(index, *pair) for index, pair in pairs if pair[0] != pair[1]], []
            for _, before, after in changed:
                with contextlib.suppress(ValueError):  # words
                    apart.append(abs(float(after) - float(before)))
            index, before, after = changed[0]
            largest = f"; largest absolute difference {max(apart):.3g}" if apart else ""
            told.append(
                f"{key} differs {len(changed)} times, first at {index}: {after!r}, not {before!r}{largest}"
            )
    return told


def main() -> int:
    """Records or compares; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--record", action="store_true", help="write goldens.json")
    parser.add_argument("--only", help="names of goldens, with commas between")
    chosen, commands = parser.parse_args(), goldens()
    names = chosen.only.split(",") if chosen.only else list(commands)
    if unknown := [name for name in names if name not in commands]:
        parser.error(f"there is no golden {unknown[0]}: there are {', '.join(commands)}.")
    known: dict[str, Record] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"  # threads change the last bits
    wrong = []
    for name in names:
        begun = time.perf_counter()
        try:
            record = run(commands[name])
            told = [] if chosen.record else differences(known.get(name, {}), record)
        except RuntimeError as error:
            told = [str(error)]
        changed = any(
            not each.endswith(" is new") for each in told
        )  # a new column leaves the others as they were
        if changed:
            wrong.append(name)
        elif chosen.record:
            known[name] = record
            kept = {each: known[each] for each in commands if each in known}
            FILE.with_suffix(".part").write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")
            FILE.with_suffix(".part").replace(FILE)
        word = "differs" if changed else "recorded" if chosen.record else "same"
        print(f"{name}: {word} ({time.perf_counter() - begun:.0f} s)", *told, sep="\n  ", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
