"""A new cart after a fall: nothing is left of the old one."""

import jax
import jax.numpy as jnp
import numpy as np
from pohp_neurd.games import cart_pole


def test_a_fall_leaves_no_remainder():
    """`remainder` belongs to the cart whose rounding left it; carried over, it would move the fresh one."""
    cart = cart_pole.Cart(*(jnp.float32(x) for x in (0.3, 0.7, 0.2, 1.3)))  # leaning, and falling fast
    none = jax.tree.map(jnp.zeros_like, cart)
    before = cart_pole.Balance(cart, none, jnp.asarray(False), jnp.zeros((), jnp.int32))
    world = cart_pole.CartPole()
    after = world.apply(before, jnp.asarray(0), key=jax.random.key(0))
    assert bool(after.fell)
    np.testing.assert_array_equal(np.asarray(after.remainder), np.zeros(4))
    fresh = world.initial(key=jax.random.key(0))
    np.testing.assert_array_equal(np.asarray(after.cart), np.asarray(fresh.cart))
    # The same step of a cart that does not fall leaves one.
    upright = before._replace(cart=cart._replace(angle=jnp.float32(0.01)))
    assert np.any(np.asarray(world.apply(upright, jnp.asarray(0), key=jax.random.key(0)).remainder))
