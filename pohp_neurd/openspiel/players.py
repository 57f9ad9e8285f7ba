"""Agents and policies as OpenSpiel's algorithms take them: a joint policy, an oracle for PSRO, a bot.

And a person at the table, who plays against a policy in the terminal.
"""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from pohp_neurd import checks
from pohp_neurd.openspiel import compile as compiling
from pohp_neurd.openspiel import policies, saved, uniforms
from pohp_neurd.openspiel.agent.agent import NeuRDCIX, Seat


class JointPolicy(openspiel_policy.Policy):
    """What `agents` play now, each at its own seat, in `game`.

    Args:
      game: an OpenSpiel game.
      agents: `NeuRDCIX` agents by player, as a list or a mapping; or one that plays all seats.
      use_observation: whether the agents see observations or information states, as in their environment;
        by default what has the length of what they were built for.

    A table answers uniformly where it has never been. Where that is everywhere, it was trained on something
    else, and questions raise.
    """

    def __init__(
        self,
        game: Any,
        agents: NeuRDCIX | Sequence[Any] | Mapping[int, Any],
        use_observation: bool | None = None,
    ) -> None:
        if isinstance(agents, NeuRDCIX):
            agents = [agents] * game.num_players()
        by_player = dict(agents if isinstance(agents, Mapping) else enumerate(agents))
        wrong = [player for player in by_player if not 0 <= player < game.num_players()]
        if wrong or not by_player:
            raise ValueError(
                f"agents must be given for players 0 to {game.num_players() - 1}, but are given for "
                f"{sorted(by_player)}."
            )
        openspiel_policy.Policy.__init__(self, game, sorted(by_player))
        self._agents = {
            player: agent.agent if isinstance(agent, Seat) else agent for player, agent in by_player.items()
        }
        sizes = {agent.info_state_size for agent in self._agents.values()}
        self._use_observation = _sees_observations(game, sizes, use_observation)
        self._recognised: set[int] = set()

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """The probability of every legal action."""
        player = policies.mover(state, player_id)
        actions = state.legal_actions(player)
        if player not in self._agents or not actions:
            raise ValueError(f"player {player} is none of {self.player_ids}, or has no legal action here.")
        legal = np.zeros((1, self.game.num_distinct_actions()), bool)
        legal[0, actions] = True
        features = [self._features(state, player)]
        if player not in self._recognised:
            met = _decisions(self.game, _SEARCHED)
            around = ([self._features(other, seat)] for other, seat in met if seat == player)
            self._check(player, itertools.chain([features], around))
        row = self._agents[player].probabilities(features, legal)[0].tolist()
        return {action: row[action] for action in actions}

    def to_tabular(self, states: Any = None) -> openspiel_policy.TabularPolicy:
        """The same as a `TabularPolicy`, from one batched pass for each player."""
        if self.game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
            raise ValueError(
                f"{self.game} has simultaneous moves, which OpenSpiel's TabularPolicy cannot hold: train on "
                f"turn_based_simultaneous_game instead."
            )
        tabular = openspiel_policy.TabularPolicy(self.game, self.player_ids, states=states)
        for player in self.player_ids:
            names = tabular.states_per_player[player]
            rows = [tabular.state_lookup[name] for name in names]
            if rows:
                features = [self._features(tabular.states[row], player) for row in rows]
                self._check(player, [features])
                legal = tabular.legal_actions_mask[rows]
                tabular.action_probability_array[rows] = self._agents[player].probabilities(features, legal)
        return tabular

    def _features(self, state: Any, player: int) -> list[float]:
        return _tensor(state, player, self._use_observation)

    def _check(self, player: int, batches: Iterable[list[list[float]]]) -> None:
        """Raises unless the agent has met one of these; one that has met nothing is uniform by right."""
        agent, kind = self._agents[player], _KINDS[self._use_observation]
        if agent.states_met == 0:
            return
        if not any(agent.met(features).any() for features in batches):
            raise ValueError(
                f"player {player}'s table has {agent.states_met} rows, but none for {kind} of {self.game}: "
                f"train it on these, or say with use_observation what it was trained on."
            )
        self._recognised.add(player)


class OraclePolicy(openspiel_policy.Policy):
    """The agent as a policy that PSRO trains: it learns while it is stepped, until it is frozen.

    Hand the class to `RLOracle(env, OraclePolicy, best_response_kwargs)`, with the agent's keywords.
    OpenSpiel has a factory for such classes, in a module that imports its own agents and all that they need.
    """

    def __init__(self, env: Any, player_id: int, **keywords: Any) -> None:
        specification = env.observation_spec()["info_state"], env.action_spec()["num_actions"]
        sizes = dict(zip(("info_state_size", "num_actions"), specification, strict=True))
        self._start(env, player_id, NeuRDCIX(player_id, **{**sizes, **keywords}))

    def _start(self, env: Any, player_id: int, agent: NeuRDCIX) -> None:
        openspiel_policy.Policy.__init__(self, env.game, [player_id])
        self._env, self._player, self._agent, self._frozen = env, player_id, agent, False
        self._joint = JointPolicy(env.game, {player_id: agent}, env.use_observation)

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """The probability of every legal action of this policy's player."""
        return self._joint.action_probabilities(state, self._player if player_id is None else player_id)

    def step(self, time_step: Any, is_evaluation: bool = False) -> Any:
        """The agent's step; one of evaluation once frozen."""
        return self._agent.step(time_step, is_evaluation or self._frozen)

    def freeze(self) -> None:
        """Stops learning."""
        self._frozen = True

    def unfreeze(self) -> None:
        """Goes on learning."""
        self._frozen = False

    def is_frozen(self) -> bool:
        """Whether learning has stopped."""
        return self._frozen

    def get_weights(self) -> Any:
        """The agent's parameters."""
        return self._agent.get_weights()

    def copy_with_noise(self, sigma: float = 0.0) -> "OraclePolicy":
        """A policy that learns on from this one, with noise on its parameters."""
        copied = OraclePolicy.__new__(OraclePolicy)
        copied._start(self._env, self._player, self._agent.copy_with_noise(sigma))
        return copied


class PolicyBot(pyspiel.Bot):
    """Draws its actions from a policy.

    OpenSpiel's own PolicyBot returns the invalid action wherever the only legal action is number 0.
    """

    def __init__(self, policy: Any, player_id: int, seed: int) -> None:
        pyspiel.Bot.__init__(self)
        # The policy's reference is kept: C++ policies die with their last Python name.
        self._policy, self._player, self._seed = policy, player_id, seed
        self._random = uniforms.generator(seed, uniforms.Role.BOT, player_id)

    def player_id(self) -> int:
        """The player for whom it acts."""
        return self._player

    def provides_policy(self) -> bool:
        """It does."""
        return True

    def restart_at(self, state: Any) -> None:
        """Nothing is remembered between states."""

    def get_policy(self, state: Any) -> list[tuple[int, float]]:
        """(action, probability) for every legal action."""
        return self.step_with_policy(state)[0]

    def step_with_policy(self, state: Any) -> tuple[list[tuple[int, float]], int]:
        """The policy at `state`, and an action drawn from it."""
        legal = state.legal_actions(self._player)
        if not legal:
            raise ValueError(f"player {self._player} has no legal action in this state.")
        if not isinstance(self._policy, pyspiel.Policy):
            known = self._policy.action_probabilities(state, self._player)
        elif not state.is_simultaneous_node():
            known = dict(self._policy.action_probabilities(state))  # C++ asks the state for the player
        else:
            raise ValueError(
                "players move at the same time here, where C++ policies do not answer: use one of Python."
            )
        # Whatever a policy says of other actions, only legal ones are drawn.
        weights = np.array([float(known.get(action, 0.0)) for action in legal])
        if not (np.all(weights >= 0) and 0 < weights.sum() < np.inf):  # False for NaN too
            raise ValueError(f"the policy must give legal actions {legal} probabilities, but says {known}.")
        chances = list(zip(legal, (weights / weights.sum()).tolist(), strict=True))
        return chances, uniforms.pick(chances, self._random.random())

    def step(self, state: Any) -> int:
        """An action drawn from the policy; always a legal one."""
        return self.step_with_policy(state)[1]


def bot(checkpoint_or_policy: Any, player_id: int, *, seed: int = 0) -> pyspiel.Bot:
    """A policy, of Python or C++, or the folder of a training run, as a bot for player `player_id`.

    The same seed plays the same game.
    """
    policy = checkpoint_or_policy
    if isinstance(policy, str | os.PathLike):
        policy = saved.openspiel_policy(saved.load(policy))
    if not hasattr(policy, "action_probabilities"):
        raise ValueError(f"a bot needs an OpenSpiel policy, but was given {type(policy).__name__}.")
    if player_id < 0:
        raise ValueError(f"player_id must be at least 0, but is {player_id}.")
    return PolicyBot(policy, player_id, seed)


QUIT = "q"
HINT = "?"


def play_in_terminal(
    game: Any,
    policy: Any,
    seat: int,
    *,
    seed: int = 0,
    opponent: Any = None,
    ask: Callable[[str], str] = input,
    tell: Callable[[str], None] = print,
) -> list[float] | None:
    """One game in the terminal.

    At each turn the person sees what its seat knows and the legal actions by name, and answers with a number
    or a name, HINT for the policy's own probabilities, or QUIT.

    Args:
      game: an OpenSpiel game, or its name.
      policy: an OpenSpiel policy that gives hints.
      seat: the person's.
      seed: of chance and of the other seats' moves.
      opponent: the policy at the other seats; by default `policy`.
      ask: shows a question, and gets the answer.
      tell: shows a line.

    Returns:
      Everyone's returns, or None if the person left.
    """
    game = compiling.load_game(game)
    checks.index("seat", seat, game.num_players())
    chance = np.random.default_rng(seed)
    theirs = policy if opponent is None else opponent
    bots = {p: PolicyBot(theirs, p, seed) for p in range(game.num_players()) if p != seat}
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
            shown = _is_shown(state, action, seat)
            tell(f"Player {player}{f': {state.action_to_string(player, action)}' if shown else ' moves.'}")
        state.apply_action(action)
    tell("")
    tell(str(state))
    tell("Returns: " + ", ".join(f"player {i} {r:+g}" for i, r in enumerate(state.returns())))
    return list(state.returns())


def _is_shown(state: Any, action: int, seat: int) -> bool:
    """Whether the person at `seat` can tell which of the mover's actions was taken."""
    known = {other: compiling.information_string(state.child(other), seat) for other in state.legal_actions()}
    return all(known[other] != known[action] for other in known if other != action)


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


_KINDS = {False: "information states", True: "observations"}
_SEARCHED = 100
"""Episodes that are searched for a state that a table has met."""


def _tensor(state: Any, player: int, use_observation: bool) -> list[float]:
    return state.observation_tensor(player) if use_observation else state.information_state_tensor(player)


def _sees_observations(game: Any, sizes: set[int], use_observation: bool | None) -> bool:
    """Whether agents that take tensors of `sizes` see observations; raises where that cannot be."""
    kind, lengths = game.get_type(), {}
    if kind.provides_information_state_tensor and use_observation is not True:
        lengths[False] = game.information_state_tensor_size()
    if kind.provides_observation_tensor and use_observation is not False:
        lengths[True] = game.observation_tensor_size()
    fitting = [seen for seen, length in lengths.items() if sizes == {length}]
    if not fitting:
        has = " and ".join(f"{_KINDS[seen]} of {length}" for seen, length in lengths.items())
        wanted = " and ".join(str(size) for size in sorted(sizes))
        raise ValueError(f"the agents take tensors of {wanted} numbers, but {game} has {has or 'none'}.")
    if len(fitting) == 2:
        for state, player in _decisions(game, 10):
            if _tensor(state, player, False) != _tensor(state, player, True):
                raise ValueError(
                    f"information states and observations of {game} are both of {sizes.pop()} numbers: say "
                    f"with use_observation=True or False which of them the agents see."
                )
    return fitting[0]


def _decisions(game: Any, episodes: int) -> Iterator[tuple[Any, int]]:
    """(state, player) at every decision of some episodes of uniform play."""
    random = np.random.default_rng(0)
    for _ in range(episodes):
        state = game.new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                state.apply_action(uniforms.pick(state.chance_outcomes(), random.random()))
                continue
            together = state.is_simultaneous_node()
            players = range(game.num_players()) if together else [state.current_player()]
            legal = {player: state.legal_actions(player) for player in players}
            yield from ((state, player) for player in players if legal[player])
            chosen = [int(random.choice(legal[player])) if legal[player] else 0 for player in players]
            if together:
                state.apply_actions(chosen)
            else:
                state.apply_action(chosen[0])
