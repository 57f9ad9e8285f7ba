"""What episodes have to say of each agent state and action.

Pipeline: action -> **trajectory** -> return. Finite games are played in lock step, and of all their
trajectories only these sums are kept.
"""

from typing import NamedTuple

from jax import Array
from jaxtyping import Float


class Tally(NamedTuple):
    """What a batch of episodes under one policy has to say of each agent state and action.

    Every direction is linear in the return, and an action's probability at a state is the same throughout
    the batch, so a learner that updates once from the batch loses nothing by these sums.
    """

    returns: Float[Array, "S A"]
    """The sum of the returns that followed the action."""
    visits: Float[Array, "S A"]
    """How often it was taken."""
    episodes: Float[Array, ""]
    """How many episodes the sums are over."""
