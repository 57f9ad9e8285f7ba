"""WORKSPACE.md's three pictures: the functions that their arrows name are those that runs enter."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

WORKSPACE = pathlib.Path(__file__).resolve().parents[1] / "WORKSPACE.md"


def pictures():
    """The functions of each picture, in order: the last words of its lines, with commas between several."""
    text = WORKSPACE.read_text(encoding="utf-8").partition("## Three pictures")[2].partition("\n## ")[0]
    found = {}
    for block in re.findall(r"(?:^    .*\n)+", text, flags=re.M):
        title, *arrows = block.splitlines()
        named = [re.search(r"-> .*?  +(\S.*)$", arrow)[1].split(", ") for arrow in arrows]
        found[title.partition(":")[0].strip()] = [name for names in named for name in names]
    return found


RUNS = {
    "finite": """
from pohp_neurd.experiment import game, game_config
game.run(game_config.Config(game="kuhn_poker", episodes=256, batch_size=64), "sampled")
game.run(game_config.Config(game="kuhn_poker", update="expected", iterations=4), "expected")
""",
    "live": """
from pohp_neurd.experiment import game, game_config
settings = dict(play="live", policy="neural", hidden_layers=(4,), episodes=64, batch_size=32)
game.run(game_config.Config(game="kuhn_poker", **settings), "live")
""",
    "online": """
from pohp_neurd.experiment import configs, single_agent
single_agent.run(configs.SingleAgent(seeds=1, num_steps=40, interval=40, width=4), "online")
""",
}
WATCHED = """
import json, sys
IMPORT
entered = set()
def watch(frame, event, _):
    module = frame.f_globals.get("__name__", "")
    if event == "call" and module.startswith("pohp_neurd."):
        name = frame.f_code.co_qualname.replace(".<locals>", "")
        entered.add(f"{module.removeprefix('pohp_neurd.')}.{name}")
sys.setprofile(watch)
RUN
sys.setprofile(None)
print(json.dumps(sorted(entered)))
"""


def test_there_is_a_picture_of_each_kind():
    found = pictures()
    assert set(found) == set(RUNS)
    assert all(len(names) >= 6 for names in found.values())


@pytest.mark.thorough
@pytest.mark.parametrize("kind", RUNS)
def test_a_run_enters_the_functions_of_its_picture(kind, tmp_path):
    imported, _, run = RUNS[kind].strip().partition("\n")
    program = WATCHED.replace("IMPORT", imported).replace("RUN", run)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    entered = set(json.loads(done.stdout.splitlines()[-1]))
    assert [name for name in pictures()[kind] if name not in entered] == []
