"""Cart pole: keep a pole upright by pushing its cart (Barto et al. 1983). Gym's physics, the paper's rewards.

First the physics as pure functions on a `Cart`, then the Process. A fall costs 1, and the pole is set
upright again at once. There is no time limit unless a horizon is asked for.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import process, types

GRAVITY = 9.8
CART_MASS = 1.0
POLE_MASS = 0.1
HALF_LENGTH = 0.5
FORCE = 10.0
SECONDS_PER_STEP = 0.02
POSITION_LIMIT = 2.4
ANGLE_LIMIT = 12 * 2 * math.pi / 360
START_LIMIT = 0.05

LEFT, RIGHT = 0, 1


class Cart(NamedTuple):
    """The cart and its pole in metres, radians and seconds: numbers, or arrays of any one shape."""

    position: Any
    velocity: Any
    angle: Any
    angular_velocity: Any


# The physics takes the array library as `xp`: the same lines serve jit (jax.numpy) and OpenSpiel (numpy).


def advance(cart: Cart, action: Any, *, xp: Any = jnp) -> Cart:
    """The cart 0.02 s later, pushed to the left (action 0) or to the right (1).

    One explicit Euler step: all four derivatives are those of the state before it. Equations of Florian
    (2007), without friction, as in Gym.
    """
    force = xp.where(action == RIGHT, xp.full_like(cart.angle, FORCE), xp.full_like(cart.angle, -FORCE))
    cosine, sine = xp.cos(cart.angle), xp.sin(cart.angle)
    total_mass = CART_MASS + POLE_MASS
    pole_moment = POLE_MASS * HALF_LENGTH
    push = (force + pole_moment * cart.angular_velocity**2 * sine) / total_mass
    inertia = HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * cosine**2 / total_mass)
    angular_acceleration = (GRAVITY * sine - cosine * push) / inertia
    acceleration = push - pole_moment * angular_acceleration * cosine / total_mass
    return Cart(
        cart.position + SECONDS_PER_STEP * cart.velocity,
        cart.velocity + SECONDS_PER_STEP * acceleration,
        cart.angle + SECONDS_PER_STEP * cart.angular_velocity,
        cart.angular_velocity + SECONDS_PER_STEP * angular_acceleration,
    )


def has_fallen(cart: Cart) -> Any:
    """Whether the cart has left the track or the pole leans more than 12 degrees."""
    return (abs(cart.position) > POSITION_LIMIT) | (abs(cart.angle) > ANGLE_LIMIT)


def render(cart: Cart) -> str:
    """The track as text, 2.4 m to each side: `#` is the cart, above it the pole, straight or leaning.

    >>> print(render(Cart(-1.2, 0.0, 0.1, 0.0)))
    |       /                 |
    |      #                  |
    position -1.20 m, angle +5.7°
    """
    cells, middle = 25, 12
    place = round(middle + float(cart.position) / POSITION_LIMIT * middle)
    degrees = math.degrees(float(cart.angle))
    lean = (degrees > 3) - (degrees < -3)
    lines = []
    for column, mark in ((place + lean, "|/\\"[lean]), (place, "#")):
        line = [" "] * cells
        line[min(max(column, 0), cells - 1)] = mark
        lines.append(f"|{''.join(line)}|")
    return "\n".join([*lines, f"position {float(cart.position):+.2f} m, angle {degrees:+.1f}°"])


class Balance(NamedTuple):
    """A history, as far as the future depends on it."""

    cart: Cart
    remainder: Cart
    """What `cart`, rounded to its dtype, lacks of the exact state."""
    fell: Bool[Array, ""]
    """Whether the step that led here let the pole fall."""
    time: Int[Array, ""]
    """Decisions so far; stays 0 in the continuing form, which never asks."""


def _advance_exactly(history: Balance, action: Int[Array, ""]) -> tuple[Cart, Cart, Bool[Array, ""]]:
    """The cart a step later, what its rounding has left, and whether it fell: a float64 step in any mode.

    An upright pole multiplies every rounding by e in 12 steps. Rounded to float32 at each step, a cart that
    stands for 93 steps ends 4e-5 off; with the remainders kept, as far as float32 can show, not at all.
    """
    kind = history.cart.angle.dtype
    with jax.enable_x64(True):
        wide = jnp.float64
        cart = jax.tree.map(lambda c, r: c.astype(wide) + r.astype(wide), history.cart, history.remainder)
        cart = advance(cart, action)
        rounded = jax.tree.map(lambda c: c.astype(kind), cart)
        remainder = jax.tree.map(lambda c, r: (c - r.astype(wide)).astype(kind), cart, rounded)
        return rounded, remainder, has_fallen(cart)


@dataclasses.dataclass(frozen=True)
class CartPole:
    """The process: continuing, as in the paper, or over at a fall and after `horizon` decisions."""

    horizon: int | None = None

    def __post_init__(self) -> None:
        if self.horizon is not None and self.horizon < 1:
            raise ValueError(f"horizon must be at least 1, or None, but is {self.horizon}.")

    @property
    def spec(self) -> process.Spec:
        """One agent, two actions, four numbers to see; an episode costs at most one fall."""
        bound = None if self.horizon is None else 1.0
        return process.Spec(1, 2, 4, reward_bound=1.0, horizon=self.horizon, return_bound=bound)

    def initial(self, *, key: types.Key) -> Balance:
        """A cart near the middle with its pole near upright: U(−0.05, 0.05) in all four numbers."""
        cart = self._upright(key)
        return Balance(cart, jax.tree.map(jnp.zeros_like, cart), jnp.asarray(False), jnp.zeros((), jnp.int32))

    def active_agent(self, history: Balance) -> Int[Array, ""]:
        """The one agent."""
        return jnp.zeros((), jnp.int32)

    def observation(self, history: Balance) -> Float[Array, "4"]:
        """The four numbers as they are."""
        return jnp.stack(history.cart)

    def legal_actions(self, history: Balance) -> Bool[Array, "2"]:
        """Both, everywhere."""
        return jnp.ones(2, bool)

    def apply(self, history: Balance, action: types.Action, *, key: types.Key) -> Balance:
        """The cart a step later; in the continuing form a fallen pole is already upright again."""
        cart, remainder, fell = _advance_exactly(history, jnp.asarray(action, jnp.int32))
        if self.horizon is None:
            fresh = self._upright(key)
            cart = jax.tree.map(lambda new, old: jnp.where(fell, new, old), fresh, cart)
            remainder = jax.tree.map(lambda old: jnp.where(fell, 0.0, old), remainder)
            return Balance(cart, remainder, fell, history.time)
        following = Balance(cart, remainder, fell, history.time + 1)
        ended = self.continuation(history) == 0
        return jax.tree.map(lambda old, new: jnp.where(ended, old, new), history, following)

    def reward(self, history: Balance) -> Float[Array, "1"]:
        """−1 for a fall."""
        return -history.fell.astype(float)[None]

    def continuation(self, history: Balance) -> Float[Array, ""]:
        """1; with a horizon, 0 after a fall and once the horizon is reached."""
        if self.horizon is None:
            return jnp.ones(())
        return ((history.time < self.horizon) & ~history.fell).astype(float)

    def render(self, history: Balance) -> str:
        """The track as text; see `render`."""
        return render(history.cart)

    def _upright(self, key: types.Key) -> Cart:
        start = jax.random.uniform(key, (4,), float, -START_LIMIT, START_LIMIT)
        return Cart(start[0], start[1], start[2], start[3])
