"""NeuRD-CIX, NeuRD and softmax policy gradient as an OpenSpiel agent.

The agent learns from whole episodes: every `batch_size` of them it makes one update. How it is stepped does
not matter: only at its turns, at every time step, in a vector of environments, alone or for all seats.
"""

import math
import operator
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
from open_spiel.python import rl_agent

from pohp_neurd import checkpoint, files, learners, types
from pohp_neurd.openspiel import uniforms
from pohp_neurd.openspiel.agent import acting, buffer, learning


class NeuRDCIX(rl_agent.AbstractAgent):
    """An agent for `rl_environment` loops; docs/openspiel.md is about it.

    Args:
      player_id: the seat it plays; None for all seats of a turn-based game. `seats` gives one agent's seats
        as agents of their own, in games with simultaneous moves too.
      info_state_size: length of `time_step.observations["info_state"][player]`, or the shape of the tensor.
      num_actions: number of distinct actions.
      learner: "neurd_cix", "neurd" or "spg".
      exploration: η of NeuRD-CIX in [0, 1], or a schedule of the number of updates.
      network: "mlp", "table", a `policy.Model`, or what `haiku.transform` returns for a function from one
        information state to logits, or to (logits, value).
      hidden_layers_sizes: of the "mlp".
      max_states: the "table" has room for so many information states, and hands out rows as it meets them.
      batch_size: episodes of one update.
      pi_learning_rate: step size, or a schedule; by default what suits network and optimizer.
      critic_learning_rate: of the value estimate. Both share an optimizer: this is a weight of the critic's
        loss, exactly its step size under "sgd".
      optimizer: "sgd" or "adam"; by default the first for a table, the second for a network.
      baseline: "value" subtracts the critic's estimate from returns; "none" only shifts them. By default the
        first where there is a critic.
      magnet_strength: pull to a slowly moving reference policy; 0 for none. By default 0.2, and 0 where there
        is one player only, who has nobody to go in circles with.
      magnet_speed: how far the reference moves at every update, in [0, 1].
      entropy_cost: pull to the uniform policy.
      threshold: logits are not pushed beyond this (Hennes et al. 2020); None for no bound.
      common_mode: "dropped" centres the update's direction over legal actions, "paper" does not.
      max_return: the largest return there can be. Returns are shifted by it so that none is positive; by
        default by the largest seen so far. With a value baseline the shift cancels.
      return_centre: the critic tells how far returns are from this; by default from the first batch's mean.
      return_scale: returns are divided by this, so that the other settings mean the same in every game; by
        default by the largest magnitude seen so far.
      input_scale: information states are divided by this for a network; by default so that the longest seen
        so far is of length 3, and those of games where none is longer are left as they are.
      max_global_gradient_norm: longer gradients are shortened to this.
      greedy: whether evaluation plays the most probable action, and says so in its probabilities.
      seed: of the parameters and of all actions. Agents of one seed draw differently at different seats.

    Raises:
      FloatingPointError: in `step` and `post_step`, where an update would leave the finite numbers; it is not
        made, and the agent stays as it was.
    """

    def __init__(
        self,
        player_id: SupportsIndex | None,
        info_state_size: SupportsIndex | Sequence[SupportsIndex] | np.ndarray | None = None,
        num_actions: SupportsIndex | None = None,
        *,
        learner: str = "neurd_cix",
        exploration: float | types.Schedule = 0.1,
        network: Any = "mlp",
        hidden_layers_sizes: SupportsIndex | Sequence[SupportsIndex | str] | np.ndarray = (128,),
        max_states: SupportsIndex = 10_000,
        batch_size: SupportsIndex = 32,
        pi_learning_rate: float | types.Schedule | None = None,
        critic_learning_rate: float | None = None,
        optimizer: str | None = None,
        baseline: str | None = None,
        magnet_strength: float | types.Schedule | None = None,
        magnet_speed: float = 0.01,
        entropy_cost: float = 0.0,
        threshold: float | None = None,
        common_mode: str = "dropped",
        max_return: float | None = None,
        return_centre: float | None = None,
        return_scale: float | None = None,
        input_scale: float | None = None,
        max_global_gradient_norm: float | None = None,
        greedy: bool = False,
        seed: SupportsIndex = 0,
        **unknown: Any,
    ) -> None:
        # What PSRO builds copies from. A zero-argument super() anywhere in here would add to `locals()`.
        given = {name: value for name, value in locals().items() if name not in ("self", "unknown")}
        self._kwargs = given
        learning.refuse(unknown, given)
        if player_id is not None and operator.index(player_id) < 0:
            raise ValueError(f"player_id must be at least 0, or None for all seats, but is {player_id}.")
        others = ("player_id", "greedy", "seed")
        told = learning.settings({name: given[name] for name in given if name not in others})
        begun = learning.whole("seed", seed, least=0)
        if begun >= uniforms.SEEDS:
            raise ValueError(f"seed must be below 2**128, but is {begun}.")

        self.player_id = None if player_id is None else operator.index(player_id)
        self._greedy = greedy
        # Of the first parameters; equal seeds at two seats do not begin alike.
        words = uniforms.generator(begun, uniforms.Role.PARAMETERS, self.player_id).integers(2**32, size=2)
        key = jax.random.wrap_key_data(jnp.asarray(words, jnp.uint32), impl="threefry2x32")
        self._learning = learning.Learning(told, key)
        rows = told.max_states if told.network == "table" else None
        self._inputs = acting.Inputs(told.info_state_size, rows, input_scale)
        self._experience = buffer.Experience(told.num_actions, self._inputs.like)
        self._copies = 0
        self._random = uniforms.Uniforms(begun, uniforms.Role.ACTING, self.player_id)
        # Evaluations draw from a stream of their own, so that they leave no trace.
        self._evaluation = uniforms.generator(begun, uniforms.Role.EVALUATING, self.player_id)

    # Acting.

    def step(self, time_step: Any, is_evaluation: bool = False) -> Any:
        """The action at `time_step` and its probabilities; learns when an update is due.

        A list of time steps, one for each environment of a `SyncVectorEnv`, gives a list. When it is not the
        agent's turn, or the episode is over, the action is None. In evaluation nothing is remembered.
        """
        return self.step_at(self.player_id, time_step, is_evaluation)

    def step_at(self, player: int | None, time_step: Any, is_evaluation: bool = False) -> Any:
        """`step` at the seat `player`; None for whoever is to move."""
        several = isinstance(time_step, list)
        time_steps = time_step if several else [time_step]
        nothing = np.zeros(self._learning.told.num_actions)
        outputs: list[Any] = []
        acting_at = []
        for environment, shown in enumerate(time_steps):
            answers = {}
            if not is_evaluation:
                if self._learning.told.players is None:
                    self._learning.meet(len(shown.observations["info_state"]))
                answers = self._experience.see(environment, shown, self.player_id)
                self._learn_if_due()
            seat = _turn(shown, player)
            if seat is None:
                outputs.append(rl_agent.StepOutput(None, nothing.copy()))
            elif seat in answers:
                outputs.append(answers[seat])
            elif not len(shown.observations["legal_actions"][seat]):
                if not shown.is_simultaneous_move():
                    raise ValueError(f"it is the turn of player {seat}, but there is no legal action.")
                # Where others move at the same time, a player may have nothing to do; as OpenSpiel says it.
                outputs.append(rl_agent.StepOutput(pyspiel.INVALID_ACTION, nothing.copy()))
            else:
                info_state = shown.observations["info_state"][seat]
                state = self._inputs.read(info_state, seat, learns=not is_evaluation)
                acting_at.append((environment, seat, state))
                outputs.append(None)
        if acting_at:
            self._act(time_steps, acting_at, outputs, is_evaluation)
        return outputs if several else outputs[0]

    def _act(
        self,
        time_steps: list[Any],
        acting_at: list[tuple[int, int, np.ndarray]],
        outputs: list[Any],
        is_evaluation: bool,
    ) -> None:
        """Fills in the outputs of the environments and seats in `acting_at`, from one pass over the model."""
        count, num_actions = len(acting_at), self._learning.told.num_actions
        states = acting_at[0][2] if count == 1 else np.array([state for *_, state in acting_at])
        logits, values = self._learning.forward(self._inputs.scaled(states))
        scale = self._learning.returns.scale
        said = [0.0] * count if values is None else values.reshape(-1).tolist()
        for row, value, place in zip(logits.reshape(count, -1), said, acting_at, strict=True):
            environment, seat, state = place
            time_step = time_steps[environment]
            legal = time_step.observations["legal_actions"][seat]
            if max(legal) >= num_actions:
                raise ValueError(f"action {max(legal)} is legal, but num_actions is {num_actions}.")
            draw = float(self._evaluation.random()) if is_evaluation else self._random.draw()
            action, probability, probabilities = acting.choose(row, legal, draw)
            if is_evaluation and self._greedy:
                action = int(legal[np.argmax(probabilities[legal])])
                probabilities = np.eye(num_actions)[action]
            outputs[environment] = output = rl_agent.StepOutput(action, probabilities)
            if not is_evaluation:
                choice = buffer.Choice(state, legal, action, probability, scale * value)
                self._experience.chose(environment, time_step, seat, choice, output)

    def probabilities(self, info_states: Any, legal: Any) -> np.ndarray:
        """The policy at many information states at once, float64 [S, A]; `legal` is a mask of that shape."""
        logits, _ = self._learning.forward(self._inputs.many(info_states))
        return acting.probabilities(logits, np.asarray(legal, bool))

    @property
    def info_state_size(self) -> int:
        """How many numbers an information state has."""
        return self._learning.told.info_state_size

    def met(self, info_states: Any) -> np.ndarray:
        """Which information states the model has an answer of its own for, bool [S]: a network for all."""
        if self._learning.told.network != "table":
            return np.ones(len(info_states), bool)
        return self._inputs.many(info_states) >= 0

    @property
    def states_met(self) -> int:
        """How many rows of a table are in use; 0 for a network."""
        return len(self._inputs.rows)

    # Learning.

    def post_step(self, reward: Sequence[Any], done: Sequence[bool]) -> None:
        """Rewards and ends of a vector of environments that restarts finished ones by itself.

        In the way of OpenSpiel's PPO, after `SyncVectorEnv.step(..., reset_if_done=True)`, whose time steps
        do not show how an episode ended.
        """
        self._experience.post(reward, done)
        self._learn_if_due()

    def learn(self, time_step: Any = None) -> None:
        """An update from the episodes that are over, without waiting for `batch_size` of them.

        For loops in the way of OpenSpiel's PPO, which call it; the time step is not looked at.
        """
        del time_step
        batch = self._experience.take_batch()
        if batch:
            arrays = self._experience.arrays(batch)
            scaled = self._inputs.scaled(arrays["agent_state"])
            self._learning.update({**arrays, "agent_state": scaled})

    def anneal_learning_rate(self, update: int, num_total_updates: int) -> None:
        """Later updates make steps of 1 − update / num_total_updates times the usual length, as in PPO."""
        if not 0 <= update <= num_total_updates or num_total_updates == 0:
            raise ValueError(f"update must lie between 0 and num_total_updates, but is {update}.")
        self._learning.anneal(1.0 - update / num_total_updates)

    def _learn_if_due(self) -> None:
        if self._experience.batch_episodes >= self._learning.told.batch_size:
            self.learn()

    @property
    def loss(self) -> float | None:
        """½ mean (G − V)² over the last batch; None before the first update."""
        return self._learning.loss

    @property
    def info(self) -> learners.Info | None:
        """The learner's diagnostics of the last update."""
        return self._learning.info

    @property
    def step_counter(self) -> int:
        """Time steps seen in training."""
        return self._experience.steps

    @property
    def episode_counter(self) -> int:
        """Episodes seen to their end in training."""
        return self._experience.episodes

    # One agent for all seats; copies for PSRO.

    def seats(self, num_players: int) -> list["Seat"]:
        """This agent at every seat of a game, as agents that share its parameters, buffer and counters."""
        return [Seat(self, player) for player in range(num_players)]

    def get_weights(self) -> list[np.ndarray]:
        """The parameters, as copies."""
        return [np.array(leaf) for leaf in jax.tree.leaves(self._learning.parameters)]

    def copy_with_noise(self, sigma: float = 0.0) -> "NeuRDCIX":
        """A fresh agent with these parameters, each with Gaussian noise of deviation `sigma`.

        Its optimizer, buffers and counters are new, and it draws its own random numbers.
        """
        if not sigma >= 0:
            raise ValueError(f"sigma must be at least 0, but is {sigma}.")
        self._copies += 1
        seed = uniforms.seed_of_copy(self._random.seed, self.player_id, self._copies)
        copied = type(self)(**{**self._kwargs, "seed": seed})
        random = uniforms.generator(seed, uniforms.Role.NOISE, self.player_id)

        def noisy(leaf: np.ndarray) -> jax.Array:
            return jnp.asarray(leaf + np.asarray(sigma * random.standard_normal(leaf.shape), leaf.dtype))

        copied._inputs.rows, copied._inputs.scale = dict(self._inputs.rows), self._inputs.scale
        mine, theirs = self._learning, copied._learning
        theirs.returns = mine.returns
        theirs.adopt(mine.program.init(jax.tree.map(noisy, mine.parameters)))
        return copied

    # Pickles hold what a checkpoint holds, and the settings.

    def __getstate__(self) -> dict[str, Any]:
        return {"keywords": self._kwargs, "snapshot": self._snapshot()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["keywords"])  # type: ignore[misc]
        self._take(state["snapshot"])

    # Checkpoints.

    def save(self, checkpoint_dir: files.Path) -> None:
        """Saves all that the agent needs to go on as if it had not stopped, in the middle of an episode too.

        Every seat has a folder of its own below `checkpoint_dir`, so that agents can share it.
        """
        folder = self._folder(checkpoint_dir)
        # Always a new number: the old checkpoint goes only when the new one is whole.
        step = max(checkpoint.steps(folder), default=-1) + 1
        checkpoint.save(folder, step, self._snapshot(), keep=1)

    def has_checkpoint(self, checkpoint_dir: files.Path) -> bool:
        """Whether `checkpoint_dir` holds a checkpoint of this seat."""
        return bool(checkpoint.steps(self._folder(checkpoint_dir)))

    def restore(self, checkpoint_dir: files.Path) -> None:
        """Takes on the saved state of an agent of the same settings; nothing changes on an error."""
        folder = self._folder(checkpoint_dir)
        shapes = checkpoint.shapes(folder)
        if shapes is None:
            raise ValueError(f"there is no checkpoint in {folder}.")

        def like(path: Any, leaf: Any) -> Any:
            """A leaf of the size that the saved one has, where this depends on what was going on."""
            name = jax.tree_util.keystr(path)
            if not name.startswith(("['experience']", "['rows']")) or name.endswith("['counters']"):
                return leaf
            return np.zeros((*shapes.get(name, ())[:1], *leaf.shape[1:]), leaf.dtype)

        restored = checkpoint.restore(folder, jax.tree_util.tree_map_with_path(like, self._snapshot()))
        if restored is None or restored.damaged:
            raise ValueError(f"the checkpoint in {folder} is damaged.")
        self._take(restored.tree)

    def _folder(self, checkpoint_dir: files.Path) -> pathlib.Path:
        seat = "all_seats" if self.player_id is None else f"player_{self.player_id}"
        return pathlib.Path(checkpoint_dir) / f"neurd_cix_{seat}"

    def _snapshot(self) -> dict[str, Any]:
        learnt, rows = self._learning, np.frombuffer(b"".join(self._inputs.rows), np.float32)
        counters = [self._random.count, self._copies, learnt.capacity, learnt.told.players or 0]
        return {
            "learner": learnt.state,
            "experience": self._experience.snapshot(),
            "rows": rows.reshape(-1, self.info_state_size),
            "seed": np.frombuffer(self._random.seed.to_bytes(16, "little"), "<u4"),
            "counters": np.array(counters, np.int64),
            "largest": np.array([*learnt.returns, self._inputs.scale]),
            "loss": np.array(math.nan if learnt.loss is None else learnt.loss),
        }

    def _take(self, saved: Mapping[str, Any]) -> None:
        learnt = self._learning
        learnt.adopt(jax.tree.map(jnp.asarray, saved["learner"]))
        self._experience.restore(saved["experience"])
        self._inputs.rows = {row.tobytes(): index for index, row in enumerate(saved["rows"])}
        count, self._copies, learnt.capacity, players = saved["counters"].tolist()
        learnt.meet(players or None)
        seed = int.from_bytes(saved["seed"].astype("<u4").tobytes(), "little")
        self._random = uniforms.Uniforms(seed, uniforms.Role.ACTING, self.player_id, count)
        # How many evaluations there were is not kept. By the count, what is drawn now repeats none of them.
        self._evaluation = uniforms.generator(seed, uniforms.Role.EVALUATING, self.player_id, count)
        *returns, self._inputs.scale = saved["largest"].tolist()
        learnt.returns = learning.Returns(*returns)
        loss = float(saved["loss"])
        learnt.loss = None if math.isnan(loss) else loss


class Seat(rl_agent.AbstractAgent):
    """One seat of an agent that plays several."""

    def __init__(self, agent: NeuRDCIX, player_id: int) -> None:
        self.agent, self.player_id = agent, player_id

    def step(self, time_step: Any, is_evaluation: bool = False) -> Any:
        """As `NeuRDCIX.step`, at this seat."""
        return self.agent.step_at(self.player_id, time_step, is_evaluation)

    @property
    def loss(self) -> float | None:
        """Of the agent."""
        return self.agent.loss

    @property
    def step_counter(self) -> int:
        """Of the agent."""
        return self.agent.step_counter


def _turn(time_step: Any, player: int | None) -> int | None:
    """The seat that is to act at `time_step`, if it is one of ours."""
    if time_step.last():
        return None
    if time_step.is_simultaneous_move():
        if player is None:
            raise ValueError(
                "players move at the same time here: step what `agent.seats(num_players)` gives."
            )
        return player
    current = int(time_step.current_player())
    return current if current >= 0 and player in (None, current) else None
