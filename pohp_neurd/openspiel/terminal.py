"""A person at the table: one game in the terminal, against a policy in all other seats."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pohp_neurd import checks
from pohp_neurd.openspiel import compile as compiling
from pohp_neurd.openspiel import players, uniforms

QUIT = "q"
HINT = "?"


def play(
    game: Any,
    policy: Any,
    seat: int,
    *,
    seed: int = 0,
    ask: Callable[[str], str] = input,
    tell: Callable[[str], None] = print,
) -> list[float] | None:
    """One game; everyone's returns, or None if the person left.

    At each turn the person sees what its seat knows and the legal actions by name, and answers with a number
    or a name, HINT for the policy's own probabilities, or QUIT.
    """
    game = compiling.load_game(game)
    checks.index("seat", seat, game.num_players())
    chance = np.random.default_rng(seed)
    bots = {p: players.PolicyBot(policy, p, seed) for p in range(game.num_players()) if p != seat}
    state = game.new_initial_state()
    while not state.is_terminal():
        if state.is_chance_node():
            state.apply_action(uniforms.pick(state.chance_outcomes(), chance.random()))
            continue
        player = state.current_player()
        if player == seat:
            action = _asked(state, policy, seat, ask, tell)
            if action is None:
                return None
        else:
            action = bots[player].step(state)
            tell(f"Player {player}: {state.action_to_string(player, action)}")
        state.apply_action(action)
    tell("")
    tell(str(state))
    tell("Returns: " + ", ".join(f"player {i} {r:+g}" for i, r in enumerate(state.returns())))
    return list(state.returns())


def _asked(
    state: Any, policy: Any, seat: int, ask: Callable[[str], str], tell: Callable[[str], None]
) -> int | None:
    legal = state.legal_actions(seat)
    names = [state.action_to_string(seat, action) for action in legal]
    tell("")
    tell(compiling.information_string(state, seat))
    choices = ", ".join(f"{number} {name}" for number, name in enumerate(names))
    while True:
        answer = ask(
            f"You are player {seat}. {choices} ({HINT} for the policy's advice, {QUIT} to leave): "
        ).strip()
        if answer == QUIT:
            return None
        if answer == HINT:
            chances = policy.action_probabilities(state, seat)
            tell(", ".join(f"{name} {chances[a]:.1%}" for a, name in zip(legal, names, strict=True)))
        elif answer.isdigit() and int(answer) < len(legal):
            return legal[int(answer)]
        elif answer.lower() in [name.lower() for name in names]:
            return legal[[name.lower() for name in names].index(answer.lower())]
        else:
            tell(f"{answer!r} is none of the choices: type a number from 0 to {len(legal) - 1}, or a name.")
