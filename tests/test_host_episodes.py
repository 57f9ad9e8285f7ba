"""Where an episode ends on the host: what the agent is told, and that the next one has begun."""

import types

import numpy as np
import pytest

from pohp_neurd.online import host


class Countdown:
    """A stand-in for a Gymnasium environment: over, or cut off, at its third step."""

    action_space = types.SimpleNamespace(n=2, start=5)
    observation_space = types.SimpleNamespace(shape=(2,))

    def __init__(self, *, terminated):
        self._terminated, self.taken, self.seeds, self._time = terminated, [], [], 0

    def reset(self, seed=None):
        self.seeds.append(seed)
        self._time = 0
        return np.zeros((1, 2)), {}

    def step(self, action):
        self.taken.append(action)
        self._time += 1
        over = self._time == 3
        return np.full((1, 2), self._time), -1.0, over and self._terminated, over and not self._terminated, {}


@pytest.mark.parametrize("terminated", [True, False], ids=["terminated", "truncated"])
@pytest.mark.parametrize("continuing", [True, False], ids=["continuing", "episodic"])
def test_ends_of_a_gymnasium_episode(terminated, continuing):
    inner = Countdown(terminated=terminated)
    world = host.Gymnasium(inner, seed=3, reward=lambda reward: 2 * reward, continuing=continuing)
    first = world.reset()
    arrivals = [world.step(action) for action in (0, 1, 0, 1)]
    assert (first.reward, first.continuation) == (0.0, 1.0)
    # After the third step stands the first observation of the next episode, with the last one's reward.
    assert [arrival.observation.tolist() for arrival in arrivals] == [[1, 1], [2, 2], [0, 0], [1, 1]]
    assert [arrival.reward for arrival in arrivals] == [-2.0] * 4
    assert [arrival.continuation for arrival in arrivals] == [1.0, 1.0, float(continuing), 1.0]
    assert inner.taken == [5, 6, 5, 6]
    # One seed for the first reset alone: with it at every one, all episodes would be the same.
    assert inner.seeds == [3, None]
