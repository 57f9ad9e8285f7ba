"""What a table's update is a mean over: episodes, or the visits of each state."""

import jax.numpy as jnp
import numpy as np
import pytest

from pohp_neurd import directions, shaping, tally_learners

EPISODES, VISITS = 10.0, np.array([[2.0, 1.0], [4.0, 4.0], [0.0, 0.0]])
RETURNS = np.array([[-3.0, -1.0], [-2.0, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize("magnet", [None, shaping.Magnet(0.7)])
@pytest.mark.parametrize("average_over", ["episodes", "visits"])
def test_a_step_is_a_mean_over_what_it_says(average_over, magnet):
    """SPG from zeros: α (sums − Σ sums / 2) / divisor, less the magnet: over 1 + α τ visits / divisor."""
    seats = tally_learners.seats(tally_learners.Rows(np.ones((3, 2), bool)), [3])
    learner = tally_learners.table(
        directions.spg(),
        step_size=0.5,
        magnet=magnet,
        baseline_rate=None,
        average_over=average_over,
    )
    tally = directions.Tally(jnp.asarray(RETURNS), jnp.asarray(VISITS), jnp.asarray(EPISODES))
    after = learner.update(seats, learner.init(seats), tally, jnp.asarray(0))[0].table.logits
    visits = VISITS.sum(axis=1, keepdims=True)
    divisor = EPISODES if average_over == "episodes" else np.maximum(visits, 1)
    expected = 0.5 * (RETURNS - RETURNS.sum(axis=1, keepdims=True) / 2) / divisor
    if magnet is not None:
        expected = expected / (1 + 0.5 * 0.7 * visits / divisor)
    np.testing.assert_allclose(after, expected, rtol=1e-6, atol=1e-7)
