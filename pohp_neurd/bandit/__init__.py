"""The bandit setting: Theorem 1's black-box reduction, and its bound put to the test.

| room | what it holds |
|---|---|
| `learners` | Hedge, regret matching, regret matching+: full-monitoring learners as (init, policy, update) |
| `guarantees` | the regret bound of each of them, along a run and ahead of it |
| `reduction` | a learner, an estimator and a schedule make a bandit learner |
| `problems`, `pure_policies` | what the arms are worth, round by round |
| `noise`, `simulation` | thousands of runs at once, inside jit |
| `regret` | realised regret, the proof's decomposition, Theorem 1's slack and bound |
"""

from pohp_neurd.bandit import guarantees as guarantees
from pohp_neurd.bandit import learners as learners
from pohp_neurd.bandit import noise as noise
from pohp_neurd.bandit import problems as problems
from pohp_neurd.bandit import pure_policies as pure_policies
from pohp_neurd.bandit import regret as regret
from pohp_neurd.bandit import simulation as simulation

# The function takes the name of its module, as `bandit.reduction(learner, estimator, schedule)` should.
from pohp_neurd.bandit.reduction import BanditLearner as BanditLearner
from pohp_neurd.bandit.reduction import reduction as reduction
from pohp_neurd.bandit.regret import best_xi as best_xi
from pohp_neurd.bandit.regret import theorem1_slack as theorem1_slack
from pohp_neurd.bandit.regret import theorem1_slack_closed_form as theorem1_slack_closed_form
from pohp_neurd.bandit.simulation import simulate as simulate
