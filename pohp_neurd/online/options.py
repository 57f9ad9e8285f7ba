"""What is chosen once for the paper's online agent; `online` says what it does. Nothing here loads JAX."""

import dataclasses

from pohp_neurd import checks

UPDATED = ("oldest", "all", "rollout")


@dataclasses.dataclass(frozen=True)
class Options:
    """What is chosen once for many runs; the defaults are how we read the paper, but for `common_mode`."""

    learner: str = "neurd_cix"
    """spg, neurd or neurd_cix."""
    updated: str = "oldest"
    """Which states of the window learn, and when: at each step the `oldest`, with its full target, or `all`,
    the newer ones with targets cut off at the present; or all of them once, when the window is full of new
    ones: a `rollout`. All take the mean of their gradients."""
    baseline: str = "critic"
    """What is subtracted from the return in the direction: the `critic`'s value now, or `none`."""
    common_mode: str = checks.COMMON_MODE
    """`dropped`: directions centred over the legal actions; or as in the `paper`."""
    probability: str = "acting"
    """Whether π(A) in the estimate is that of the time of `acting` or of the time of the `update`."""
    bootstrapped: str = "every"
    """Whether the bootstrap factor multiplies `every` value in the λ-return or the `last` one alone."""
    window: int = 32
    """Steps of a target."""
    lambda_: float = 0.9
    bootstrap: float = 0.9
    """The factor on values, never on rewards."""
    critic_cost: float = 1.0
    decay: float = 0.999
    """Adam's β2."""
    epsilon: float = 1e-8
    """Adam's ε."""
    exploration_decay: float = 0.0
    """p of the factor (1 + t / decay_start)^-p on the exploration at update t; 0 leaves it constant."""
    decay_start: int = 1_000

    def __post_init__(self) -> None:
        checks.one_of("learner", self.learner, checks.LEARNERS)
        checks.one_of("updated", self.updated, UPDATED)
        checks.one_of("baseline", self.baseline, ("critic", "none"))
        checks.one_of("common_mode", self.common_mode, checks.COMMON_MODES)
        checks.one_of("probability", self.probability, ("acting", "update"))
        checks.one_of("bootstrapped", self.bootstrapped, ("every", "last"))
        checks.in_unit_interval("lambda_", self.lambda_)
        checks.in_unit_interval("bootstrap", self.bootstrap)
        checks.non_negative("critic_cost", self.critic_cost)
        checks.in_unit_interval("decay", self.decay)
        checks.positive("epsilon", self.epsilon)
        checks.non_negative("exploration_decay", self.exploration_decay)
        for name in ("window", "decay_start"):
            checks.count(name, getattr(self, name))

    def updates(self, steps: int) -> int:
        """How many updates `steps` decisions have brought."""
        complete = max(0, steps - 1)  # the last has not been followed by anything yet
        if self.updated == "rollout":
            return complete // self.window
        return complete if self.updated == "all" else max(0, steps - self.window)
