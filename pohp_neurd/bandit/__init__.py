"""The bandit setting: Theorem 1's black-box reduction, and its bound put to the test.

| module | what it holds |
|---|---|
| `learners` | Hedge, regret matching (+) and their regret bounds; the reduction to a bandit learner |
| `problems` | what the arms are worth, round by round; a finite POHP's pure policies as arms |
| `simulation` | thousands of runs at once, inside jit |
| `regret` | realised regret, the proof's decomposition, Theorem 1's slack and bound |
"""

from pohp_neurd.bandit import learners, problems, regret, simulation
from pohp_neurd.bandit.learners import BanditLearner, reduction
from pohp_neurd.bandit.regret import best_xi, theorem1_slack, theorem1_slack_closed_form
from pohp_neurd.bandit.simulation import simulate

__all__ = [
    "BanditLearner",
    "best_xi",
    "learners",
    "problems",
    "reduction",
    "regret",
    "simulate",
    "simulation",
    "theorem1_slack",
    "theorem1_slack_closed_form",
]
