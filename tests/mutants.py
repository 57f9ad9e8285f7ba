"""Would the tests notice? One-line changes, each a bug that someone could have written, and who catches it.

`make mutants` applies one change after the other to a copy of the repo, runs the tests that should fail first
and, only if none does, all tests of their folder that are not marked slow. Rows are written as they are
found, so that a run that is stopped goes on where it was. docs/testing.md has the last result.
"""

import argparse
import concurrent.futures
import csv
import functools
import hashlib
import multiprocessing
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
from typing import NamedTuple

import tqdm


class Mutant(NamedTuple):
    """A change of one place."""

    name: str
    file: str
    old: str
    """Must occur exactly once in the file, or the mutant is stale."""
    new: str
    tests: str
    """Files under tests/, or tests in them, that run first; several are separated by spaces."""
    accepted: str = ""
    """Why nobody has to notice; empty for a mutant that must be caught."""


# fmt: off
MUTANTS = (
    # What once survived: independence, warm-up, weights, signs.
    Mutant("parameter average without warm-up", "pohp_neurd/averaging.py",
           "step = jnp.maximum(rate, 1.0 / count.astype(jnp.float32))",
           "step = jnp.asarray(rate, jnp.float32)",
           "test_averaging.py"),
    Mutant("the world replies with the action's key", "pohp_neurd/online/lifetimes.py",
           "arrived = world.apply(life.history, action, key=keys[1])",
           "arrived = world.apply(life.history, action, key=keys[0])",
           "test_independence.py::test_a_life_draws_everything_from_a_key_of_its_own"),
    Mutant("network and first history from one key", "pohp_neurd/online/lifetimes.py",
           "history = world.initial(key=world_key)",
           "history = world.initial(key=model_key)",
           "test_independence.py::test_a_life_draws_everything_from_a_key_of_its_own"),
    Mutant("one key for two steps running", "pohp_neurd/online/lifetimes.py",
           "times = life.agent.time + jnp.arange(num_steps, dtype=jnp.int32)",
           "times = life.agent.time + jnp.arange(num_steps, dtype=jnp.int32) // 2",
           "test_independence.py::test_a_life_draws_everything_from_a_key_of_its_own"),
    Mutant("agent: a mean over episodes", "pohp_neurd/openspiel/agent/agent.py",
           "weight=padded(np.full(count, 1.0 / count)),",
           "weight=padded(np.full(count, 1.0 / self._settings.batch_size)),",
           "openspiel/test_agent_updates.py openspiel/test_agent.py"),
    Mutant("agent: the same block of numbers again", "pohp_neurd/openspiel/uniforms.py",
           "numbers = generator(self.seed, self.role, self.seat, block).random(_BLOCK)",
           "numbers = generator(self.seed, self.role, self.seat, 0).random(_BLOCK)",
           "test_independence.py::test_no_stream_of_an_agent_or_a_bot_comes_again"),
    Mutant("live: the same episodes at every update", "pohp_neurd/openspiel/live/train.py",
           "key=jax.random.fold_in(state.key, state.learner.updates),",
           "key=jax.random.fold_in(state.key, 0),",
           "test_independence.py::test_live_play_of_two_updates_and_two_seeds"),
    Mutant("live: a step not folded into the key", "pohp_neurd/openspiel/live/players.py",
           "draws.uniform(jax.random.fold_in(key, step), (count,))",
           "draws.uniform(key, (count,))",
           "test_independence.py::test_live_play_of_two_updates_and_two_seeds"),
    Mutant("bound: without the responders' variance", "pohp_neurd/openspiel/live/match.py",
           "squares += squared",
           "squares += 0.0 * squared",
           "openspiel/test_responder_bound.py"),
    Mutant("agent: entropy with the wrong sign", "pohp_neurd/openspiel/agent/settings.py",
           "surprise = -jnp.log(",
           "surprise = jnp.log(",
           "openspiel/test_agent_updates.py"),
    Mutant("agent: critic's cost not divided by the rate", "pohp_neurd/openspiel/agent/settings.py",
           "return settings.critic_learning_rate / float(rate(0) if callable(rate) else rate)",
           "return settings.critic_learning_rate",
           "openspiel/test_agent_updates.py"),
    # More on keys and streams.
    Mutant("a life is born at step 0", "pohp_neurd/online/lifetimes.py",
           "jax.random.fold_in(key, jnp.iinfo(jnp.int32).max)",
           "jax.random.fold_in(key, 0)",
           "test_independence.py::test_a_life_draws_everything_from_a_key_of_its_own"),
    Mutant("a new beginning with the reply's key", "pohp_neurd/online/lifetimes.py",
           "fresh = world.initial(key=keys[2])",
           "fresh = world.initial(key=keys[1])",
           "test_independence.py::test_a_life_draws_everything_from_a_key_of_its_own"),
    Mutant("self-play: the same episodes at every update", "pohp_neurd/self_play.py",
           "tally = tally_of(arena, table, jax.random.fold_in(key, state.updates))",
           "tally = tally_of(arena, table, key)",
           "test_independence.py::test_updates_of_self_play"),
    Mutant("live: network and play from one key", "pohp_neurd/openspiel/live/train.py",
           "jax.random.fold_in(key, 1), *counts)",
           "jax.random.fold_in(key, 0), *counts)",
           "test_independence.py::test_live_chance_and_actions"),
    Mutant("matches: evaluation plays training's episodes", "pohp_neurd/openspiel/live/match.py",
           "jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 2), number)",
           "jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 1), number)",
           "test_independence.py::test_training_evaluation_and_responders_are_dealt_other_cards"),
    Mutant("bots of all seats draw alike", "pohp_neurd/openspiel/bot.py",
           "uniforms.generator(seed, uniforms.Role.BOT, player_id)",
           "uniforms.generator(seed, uniforms.Role.BOT, None)",
           "test_independence.py::test_agents_and_bots_of_one_seed_at_all_seats_and_in_all_roles"),
    Mutant("streams of seats alike", "pohp_neurd/openspiel/uniforms.py",
           "0 if seat is None else seat + 1",
           "0",
           "test_independence.py::test_agents_and_bots_of_one_seed_at_all_seats_and_in_all_roles"),
    Mutant("bandit: the problem draws the arm's number", "pohp_neurd/bandit/simulation.py",
           "return Numbers(draws.Fixed(*(half.astype(jnp.int32) for half in halves)), _real(bits[1:]))",
           "return Numbers(draws.Fixed(*(half.astype(jnp.int32) for half in halves)), _real(bits[:-1]))",
           "test_independence.py::test_arms_and_utilities_over_rounds_and_runs"),
    Mutant("bandit: rounds in pairs", "pohp_neurd/bandit/simulation.py",
           "uniforms(key, count, problem.num_uniforms, num_runs)",
           "uniforms(key, count // 2, problem.num_uniforms, num_runs)",
           "test_independence.py::test_arms_and_utilities_over_rounds_and_runs"),
    Mutant("summary: both sides of a difference drawn alike", "pohp_neurd/experiment/summary.py",
           "drawn.append(_resampled(strata, resamples, generator))",
           "drawn.append(_resampled(strata, resamples, np.random.default_rng(seed)))",
           "experiment/test_summary.py::test_differences_are_those_of_all_pairs_of_resamples"),
    # Estimators and returns.
    Mutant("CIX without its cap", "pohp_neurd/estimators.py",
           "jnp.minimum(_corrected(probability, exploration), 1.0)",
           "_corrected(probability, exploration)",
           "test_estimators.py::test_weights_by_hand"),
    Mutant("IX without exploration", "pohp_neurd/estimators.py",
           "return _reciprocal(_corrected(probability, exploration))",
           "return _reciprocal(_real(probability))",
           "test_estimators.py::test_weights_by_hand"),
    Mutant("action values without their baseline", "pohp_neurd/estimators.py",
           "return baseline + jnp.where(taken, (return_ - baseline) * weight, 0.0)",
           "return jnp.where(taken, (return_ - baseline) * weight, 0.0)",
           "test_estimators.py::test_action_values_by_hand"),
    Mutant("advantages of illegal actions", "pohp_neurd/estimators.py",
           "jnp.where(legal, jnp.where(taken, scale * (1.0 - probability), -scale * probability), 0.0)",
           "jnp.where(taken, scale * (1.0 - probability), -scale * probability)",
           "test_estimators.py::test_sampled_advantages_need_the_sampled_probability_alone "
           "test_estimators.py::test_advantages_by_hand"),
    Mutant("returns go on past the end", "pohp_neurd/returns.py",
           "return_ = reward + continuation * mixed",
           "return_ = reward + mixed",
           "test_returns.py::test_monte_carlo_by_hand"),
    Mutant("no value at the cut", "pohp_neurd/returns.py",
           "return jax.lax.scan(backward, values[-1], steps, reverse=True)[1]",
           "return jax.lax.scan(backward, jnp.zeros_like(values[-1]), steps, reverse=True)[1]",
           "test_returns.py::test_lambda_returns_by_hand"),
    Mutant("truncated returns cut one step late", "pohp_neurd/returns.py",
           "inside = windows < length",
           "inside = windows <= length",
           "test_returns.py::test_truncated_lambda_returns_match_the_forward_view"),
    # Policy and directions.
    Mutant("probabilities where nothing is legal", "pohp_neurd/policy.py",
           "weights = jnp.where(legal, jnp.exp(shifted), 0.0)",
           "weights = jnp.exp(shifted)",
           "test_policy.py::test_no_legal_action_gives_zeros"),
    Mutant("entropy with the wrong sign", "pohp_neurd/policy.py",
           "return -jnp.sum(probabilities(logits, legal) * log_probabilities(logits, legal), axis=-1)",
           "return jnp.sum(probabilities(logits, legal) * log_probabilities(logits, legal), axis=-1)",
           "test_policy.py::test_entropy_by_hand_and_its_gradient"),
    Mutant("centred over illegal actions too", "pohp_neurd/policy.py",
           "count = jnp.maximum(jnp.sum(legal, axis=-1, keepdims=True), 1).astype(values.dtype)",
           "count = jnp.asarray(legal.shape[-1], values.dtype)[None]",
           "test_policy.py::test_centred_is_over_legal_actions"),
    Mutant("SPG takes the sampled action's probability", "pohp_neurd/learners.py",
           "return jnp.where(decision.legal, scale * (taken - probabilities), 0.0)",
           "return jnp.where(decision.legal, scale * (taken - decision.probability), 0.0)",
           "test_directions.py::test_spg_by_hand"),
    Mutant("NeuRD's mean is not under the policy", "pohp_neurd/learners.py",
           "return jnp.where(legal, estimates - jnp.sum(probabilities * estimates), 0.0)",
           "return jnp.where(legal, estimates - jnp.mean(estimates), 0.0)",
           "test_tally_learners.py::test_a_summed_direction_is_the_sum_of_directions"),
    Mutant("exploration that grows", "pohp_neurd/learners.py",
           "(1.0 + jnp.asarray(count, kind) / start) ** -power",
           "(1.0 + jnp.asarray(count, kind) / start) ** power",
           "test_schedules.py"),
    Mutant("Theorem 1's schedule a round late", "pohp_neurd/learners.py",
           "jnp.sqrt(num_actions * (jnp.asarray(count, float) + 1.0))",
           "jnp.sqrt(num_actions * jnp.maximum(jnp.asarray(count, float), 1.0))",
           "test_learners.py::test_theorem1_schedule"),
    Mutant("critic's loss without its half", "pohp_neurd/learners.py",
           "loss = loss + critic_cost * 0.5 * (decision.target - output.value) ** 2",
           "loss = loss + critic_cost * (decision.target - output.value) ** 2",
           "test_learners.py::test_critic_descends_half_its_squared_error"),
    Mutant("padding learns", "pohp_neurd/learners.py",
           "return decision.weight * loss, (",
           "return loss, (",
           "test_learners.py::test_padding_changes_nothing_and_stays_finite"),
    Mutant("a magnet that repels", "pohp_neurd/learners.py",
           "direction = direction + settings.magnet_strength * pull",
           "direction = direction - settings.magnet_strength * pull",
           "test_regularisation.py::test_fixed_magnet_is_a_geometric_pull"),
    Mutant("the magnet's move the wrong way round", "pohp_neurd/learners.py",
           "reference = optax.incremental_update(parameters, state.magnet, speed)",
           "reference = optax.incremental_update(state.magnet, parameters, speed)",
           "test_regularisation.py::test_moving_magnet_follows_the_parameters"),
    Mutant("mean weight over padding too", "pohp_neurd/learners.py",
           "mean_weight=jnp.sum(weights) / total,",
           "mean_weight=jnp.mean(weights),",
           "test_learners.py::test_info_matches_numpy"),
    # Updates from sums.
    Mutant("a visit's baseline rate for all visits", "pohp_neurd/tally_learners.py",
           "values = values + (1.0 - (1.0 - baseline_rate) ** visits) * (mean - values)",
           "values = values + baseline_rate * jnp.minimum(visits, 1.0) * (mean - values)",
           "test_tally_learners.py::test_the_tables_baseline_is_a_running_mean_of_returns"),
    Mutant("tables: always a mean over episodes", "pohp_neurd/tally_learners.py",
           "new = logits + size * direction / divisor",
           "new = logits + size * direction / tally.episodes",
           "test_table_averages.py"),
    Mutant("tables: the magnet's pull explicit", "pohp_neurd/tally_learners.py",
           "new = (new + pull * reference) / (1.0 + pull)",
           "new = new + pull * (reference - new)",
           "test_tally_learners.py::test_the_magnet_of_a_table_is_the_proximal_step_at_every_state"),
    Mutant("networks: critic's error without visits", "pohp_neurd/tally_learners.py",
           "(visits * found.value - jnp.sum(tally.returns, axis=1))",
           "(found.value - jnp.sum(tally.returns, axis=1))",
           "test_tally_learners.py::test_a_network_learns_from_a_tally_as_from_its_decisions"),
    Mutant("baseline subtracted once, not per visit", "pohp_neurd/tally_learners.py",
           "tally.returns - tally.visits * values[:, None]",
           "tally.returns - values[:, None]",
           "test_tally_learners.py::test_a_table_learns_from_a_tally_as_from_its_decisions"),
    # Play and self-play.
    Mutant("rollout: what was earned before counts again", "pohp_neurd/finite/rollout.py",
           "return_ = return_ - board.returns[episodes.row, agent]",
           "return_ = return_ + 0.0",
           "test_rollout.py"),
    Mutant("rollout: chance a decision early", "pohp_neurd/finite/rollout.py",
           "(web.fewest <= step + 1) & (step + 1 <= web.most)",
           "(web.fewest <= step) & (step <= web.most)",
           "test_rollout.py::test_histories_come_as_often_as_they_should"),
    Mutant("self-play: returns multiplied by the scale", "pohp_neurd/self_play.py",
           "tally = tally._replace(returns=tally.returns / scale)",
           "tally = tally._replace(returns=tally.returns * scale)",
           "test_self_play.py::test_scaled_returns_are_a_smaller_step_with_a_stronger_magnet"),
    Mutant("self-play: expected visits without the own plan", "pohp_neurd/self_play.py",
           "return trajectory.Tally(share * advantages, share * reach, jnp.ones((), table.dtype))",
           "return trajectory.Tally(share * advantages, table * reach, jnp.ones((), table.dtype))",
           "test_self_play.py::test_expected_tallies_make_exact_directions "
           "test_self_play.py::test_sampled_tallies_are_expected_ones_on_average"),
    Mutant("average: the first update has no weight", "pohp_neurd/averaging.py",
           "weight = (updates.astype(total.dtype) + 1) ** self.power",
           "weight = updates.astype(total.dtype) ** self.power",
           "test_self_play.py::test_the_average_policy_weighs_with_own_reach_and_time"),
    Mutant("average: nothing is forgotten", "pohp_neurd/averaging.py",
           "return (1 - self.forgetting) * total + weight",
           "return total + weight",
           "test_self_play.py::test_the_average_policy_weighs_with_own_reach_and_time"),
    # Exact quantities.
    Mutant("returns before the first turn are lost", "pohp_neurd/finite/evaluation.py",
           "value, start = gained.at_root, 1",
           "value, start = jnp.zeros_like(gained.at_root), 1",
           "test_exact.py openspiel/test_nash_conv.py"),
    Mutant("rewards beside later turns are lost", "pohp_neurd/finite/evaluation.py",
           "both = earned[level.both[0]] + children[level.both[1]]",
           "both = 0.0 * earned[level.both[0]] + children[level.both[1]]",
           "openspiel/test_nash_conv.py::test_known_values_of_the_uniform_policy"),
    Mutant("best responses may play illegal actions", "pohp_neurd/finite/evaluation.py",
           "jnp.max(values, axis=1), illegal=-jnp.inf)",
           "jnp.max(values, axis=1), illegal=0.0)",
           "test_wide_levels.py"),
    Mutant("sequence form: padding counts", "pohp_neurd/finite/sequence_form.py",
           "coefficient=np.where(inside, coefficient[entries], 0.0),",
           "coefficient=coefficient[entries],",
           "openspiel/test_nash_conv.py::test_known_values_of_the_uniform_policy"),
    Mutant("sequence form: chance forgotten", "pohp_neurd/finite/sequence_form.py",
           "coefficients = tree.rewards[rows, agent] * chance[rows]",
           "coefficients = tree.rewards[rows, agent]",
           "openspiel/test_nash_conv.py::test_known_values_of_the_uniform_policy"),
    Mutant("recall: one's own action forgotten", "pohp_neurd/finite/sequence_form.py",
           "identity = (earlier + 1) * (tree.num_actions + 1) + action[rows] + 1",
           "identity = (earlier + 1) * (tree.num_actions + 1)",
           "test_forgetful_states.py"),
    Mutant("expected CIX without its cap", "pohp_neurd/exact.py",
           "beta = np.minimum(1.0, table + (exploration if learner == \"neurd_cix\" else 0.0))",
           "beta = table + (exploration if learner == \"neurd_cix\" else 0.0)",
           "test_exact.py::test_expected_directions_equal_enumeration_of_trajectories"),
    Mutant("single precision is not made to sum to 1", "pohp_neurd/exact.py",
           "policy = policy / jnp.sum(policy, axis=1, keepdims=True)",
           "policy = policy / 1.0",
           "test_unreached_states.py"),
    Mutant("counterfactual reach the wrong way round", "pohp_neurd/finite/beliefs.py",
           "others[acts, agent] = 1.0",
           "others[acts] = np.where(np.arange(world.num_agents) == agent[:, None], others[acts], 1.0)",
           "test_exact.py::test_counterfactual_realization_leaves_out_ones_own_actions"),
    Mutant("shifted by the child's best return", "pohp_neurd/finite/beliefs.py",
           "shifted = worth - world.best_return_to_go[source[acts], agent]",
           "shifted = worth - world.best_return_to_go[child[acts], agent]",
           "test_exact.py::test_expected_directions_equal_enumeration_of_trajectories "
           "test_exact.py::test_quantities_equal_recursion"),
    Mutant("beliefs off the path are uniform", "pohp_neurd/finite/beliefs.py",
           "np.where(counterfactual[at] > 0, attempted, 1.0))",
           "np.where(counterfactual[at] > 0, 1.0, 1.0))",
           "test_unreached_states.py"),
    # Regularisation, checkpoints, optimizer.
    Mutant("a threshold on one side only", "pohp_neurd/regularisation.py",
           "((position <= -threshold) & (direction < 0))",
           "((position <= -threshold) & (direction > 0))",
           "test_regularisation.py::test_threshold_by_hand"),
    Mutant("proximal step divided by the strength alone", "pohp_neurd/regularisation.py",
           "/ (1.0 + pull)",
           "/ (1.0 + strength)",
           "test_regularisation.py::test_proximal_step_is_the_maximiser"),
    Mutant("the oldest checkpoint is restored", "pohp_neurd/checkpoint.py",
           "    found = sorted(steps(folder), reverse=True)",
           "    found = sorted(steps(folder))",
           "test_checkpoint.py::test_the_newest_are_kept_and_nothing_else_is_left_behind test_checkpoint.py"),
    Mutant("checkpoints are not checked", "pohp_neurd/checkpoint.py",
           "if hashlib.sha256(content).hexdigest() != checksum:",
           "if not content:",
           "test_checkpoint.py::test_a_damaged_checkpoint_is_named_and_the_one_before_it_used"),
    Mutant("Adam without bias correction", "pohp_neurd/adam.py",
           "root = jnp.sqrt(-jnp.expm1(count.astype(v.dtype) * jnp.log(jnp.asarray(decay, v.dtype))))",
           "root = jnp.ones((), v.dtype)",
           "test_adam.py::test_it_is_optax_adam_without_momentum"),
    Mutant("Adam's epsilon corrected twice", "pohp_neurd/adam.py",
           "(jnp.sqrt(v) + epsilon * root)",
           "(jnp.sqrt(v) + epsilon)",
           "test_adam.py::test_it_is_optax_adam_without_momentum"),
    Mutant("idle moments decay once too often", "pohp_neurd/online/actor_critic.py",
           "state.row_counts.at[active].set(count + 1),",
           "state.row_counts.at[active].set(count),",
           "test_actor_critic.py::test_sparse_equals_dense_over_200_updates"),
    # The online agent, and worlds.
    Mutant("online: learns from before the beginning", "pohp_neurd/online/agent.py",
           "complete = jnp.arange(learning, dtype=jnp.int32) > size - state.time",
           "complete = jnp.arange(learning, dtype=jnp.int32) >= size - state.time",
           "test_online.py::test_200_steps_equal_the_slow_agent"),
    Mutant("online: the last value is not discounted", "pohp_neurd/online/agent.py",
           "jnp.arange(options.window) < options.window - 1",
           "jnp.arange(options.window) < options.window",
           "test_online.py::test_200_steps_equal_the_slow_agent"),
    Mutant("host: a truncated episode goes on", "pohp_neurd/online/host.py",
           "ended = terminated or truncated",
           "ended = terminated",
           "test_host_episodes.py"),
    Mutant("host: returns stop in the continuing form", "pohp_neurd/online/host.py",
           "float(not ended or self._continuing)",
           "float(not ended)",
           "test_host_episodes.py"),
    Mutant("catch: the paddle leaves the board", "games/catch.py",
           "paddle = xp.clip(board.paddle + action - STAY, 0, columns - 1)",
           "paddle = xp.clip(board.paddle + action - STAY, 0, columns)",
           "games/test_catch.py::test_it_steps_in_lock_step_with_bsuite"),
    Mutant("catch: swapped from the beginning", "games/catch.py",
           "history.time // self.swap_every % 2 == 1",
           "history.time // self.swap_every % 2 == 0",
           "games/test_catch.py::test_left_and_right_swap_after_every_few_decisions"),
    Mutant("cart pole: the pole pushes the wrong way", "games/cart_pole.py",
           "acceleration = push - pole_moment * angular_acceleration * cosine / total_mass",
           "acceleration = push + pole_moment * angular_acceleration * cosine / total_mass",
           "games/test_cart_pole.py::test_it_steps_in_lock_step_with_gymnasium"),
    Mutant("cart pole: a fall leaves its remainder", "games/cart_pole.py",
           "remainder = jax.tree.map(lambda old: jnp.where(fell, 0.0, old), remainder)",
           "remainder = jax.tree.map(lambda old: jnp.where(fell, old, old), remainder)",
           "games/test_cart_pole_falls.py"),
    # Bandits.
    Mutant("reduction: the schedule stands still", "pohp_neurd/bandit/reduction.py",
           "estimate(state, action, utility)), state.rounds + 1)",
           "estimate(state, action, utility)), state.rounds)",
           "bandit/test_reduction.py::test_the_schedule_counts_rounds_from_one"),
    Mutant("slack without its last term", "pohp_neurd/bandit/regret.py",
           "(smallest + 0.5) * log_term",
           "smallest * log_term",
           "bandit/test_regret.py::test_the_slack_has_the_known_values_at_the_best_xi "
           "bandit/test_regret.py::test_the_slack_takes_arrays_lists_numbers_and_schedules"),
    Mutant("a union bound over too few events", "pohp_neurd/bandit/regret.py",
           "np.log((num_arms + 1) / delta)",
           "np.log(num_arms / delta)",
           "bandit/test_regret.py::test_the_slack_has_the_known_values_at_the_best_xi"),
    Mutant("Clopper and Pearson off by one", "pohp_neurd/bandit/regret.py",
           "special.betaincinv(violations + 1, num_runs - violations, confidence)",
           "special.betaincinv(violations + 1, num_runs - violations + 1, confidence)",
           "bandit/test_regret.py::test_violation_limits_are_clopper_and_pearsons"),
    Mutant("Hedge's spread without the square", "pohp_neurd/bandit/learners.py",
           "spread = max_return**2 * num_arms / 2 * np.cumsum(steps)",
           "spread = max_return * num_arms / 2 * np.cumsum(steps)",
           "bandit/test_guarantees.py"),
    Mutant("regret matching's surprise without the square", "pohp_neurd/bandit/learners.py",
           "surprise = log_term / (2 * np.minimum.accumulate(explorations) ** 2)",
           "surprise = log_term / (2 * np.minimum.accumulate(explorations))",
           "bandit/test_guarantees.py"),
    # OpenSpiel.
    Mutant("agent: discounts forgotten", "pohp_neurd/openspiel/agent/episode.py",
           "self.reward += self.continuation * reward",
           "self.reward += reward",
           "openspiel/test_episode.py"),
    Mutant("agent: posted rewards counted twice", "pohp_neurd/openspiel/agent/buffer.py",
           "reward = 0.0 if posted else float(rewards[seat])",
           "reward = float(rewards[seat])",
           "openspiel/test_agent_updates.py::test_a_reward_that_is_posted_and_shown_counts_once"),
    Mutant("agent: returns not shifted", "pohp_neurd/openspiel/agent/agent.py",
           "return_=padded((returns - shift) / self._scale),",
           "return_=padded(returns / self._scale),",
           "openspiel/test_agent.py::test_without_a_baseline_no_return_is_positive"),
    Mutant("agent: values remembered without their scale", "pohp_neurd/openspiel/agent/agent.py",
           "episode.Choice(state, legal, action, probability, self._scale * value)",
           "episode.Choice(state, legal, action, probability, value)",
           "openspiel/test_agent.py::test_a_step_of_a_table_by_hand "
           "openspiel/test_agent.py::test_returns_are_scaled_by_the_largest_magnitude_seen "
           "openspiel/test_agent_updates.py"),
    Mutant("agent: evaluation uses up acting's numbers", "pohp_neurd/openspiel/agent/agent.py",
           "draw = float(self._evaluation.random()) if is_evaluation else self._random.draw()",
           "draw = self._random.draw()",
           "openspiel/test_agent.py::test_evaluation_leaves_no_trace"),
    Mutant("agent: a state never met has the last row's policy", "pohp_neurd/openspiel/agent/acting.py",
           "logits = np.where(met[..., None], parameters.logits[rows], 0.0)",
           "logits = parameters.logits[rows]",
           "openspiel/test_agent_updates.py::test_a_table_knows_nothing_of_a_state_that_it_never_met"),
    Mutant("policies: rows that nearly sum to 1", "pohp_neurd/openspiel/policies.py",
           "return array / array.sum(axis=-1, keepdims=True)",
           "return array",
           "openspiel/test_policies.py::test_probabilities_are_float64_and_sum_to_one"),
    Mutant("matches: the wrong seat of three", "pohp_neurd/openspiel/live/match.py",
           "(np.arange(count)[None, :] - shift[:, None]) % count",
           "(np.arange(count)[None, :] + shift[:, None]) % count",
           "openspiel/test_responder_bound.py::test_every_policy_sits_where_it_is_counted"),
    Mutant("compile: rewards on the way add up twice", "pohp_neurd/openspiel/compile.py",
           "rows.rewards.extend([now - before for now, before in zip(total, earned, strict=True)])",
           "rows.rewards.extend([now - 0.0 * before for now, before in zip(total, earned, strict=True)])",
           "openspiel/test_compiled_rewards.py"),
    Mutant("live: rewards of the decision before", "pohp_neurd/openspiel/live/play.py",
           "after = np.where(last, total, np.roll(all_.earned, -1))",
           "after = np.where(last, total, all_.earned)",
           "openspiel/test_states.py::test_rewards_on_the_way_stand_where_they_were_earned "
           "openspiel/test_states.py::test_rewards_add_up"),
    Mutant("live: returns not shifted", "pohp_neurd/openspiel/live/play.py",
           "shifted = padded(played.return_ - world.max_utility, np.float32)",
           "shifted = padded(played.return_, np.float32)",
           "openspiel/test_states.py::test_batches_for_a_learner"),
    Mutant("live: a mean over decisions", "pohp_neurd/openspiel/live/train.py",
           "weight = 1.0 / config.batch_episodes",
           "weight = 1.0 / max(count, 1)",
           "openspiel/test_live.py::test_an_update_is_the_learners_on_fresh_episodes"),
    Mutant("network without its skip connection", "pohp_neurd/neural.py",
           "hidden = units if last else jnp.concatenate([units, hidden])",
           "hidden = units",
           "test_neural.py::test_output_matches_a_loop"),
    # Statistics over seeds.
    Mutant("interquartile mean of the middle third", "pohp_neurd/experiment/summary.py",
           "cut = values.shape[-1] // 4",
           "cut = values.shape[-1] // 3",
           "experiment/test_summary.py::test_figures_are_those_of_numpy_and_scipy"),
    Mutant("intervals with both tails on each side", "pohp_neurd/experiment/summary.py",
           "[(1 - confidence) / 2, (1 + confidence) / 2]",
           "[1 - confidence, confidence]",
           "experiment/test_summary.py::test_intervals_are_quantiles_of_all_resamples_there_are"),
)
# fmt: on

ROOT = pathlib.Path(__file__).resolve().parents[1]
MAX_SURVIVORS = 2
_SECONDS = 1_800  # for one run of tests: some changes make loops that do not end
_COLUMNS = ("mutant", "file", "digest", "verdict", "by")
CAUGHT, SURVIVED, STALE, BROKEN = "caught", "survived", "stale", "broken"


class Verdict(NamedTuple):
    """What became of a mutant."""

    verdict: str
    by: str
    """The test that failed first, or what is wrong."""


def digest(mutant: Mutant, root: pathlib.Path) -> str:
    """Changes with the mutant and with the file that it is of: then an old verdict is worth nothing."""
    content = "\n".join([mutant.old, mutant.new, (root / mutant.file).read_text(encoding="utf-8")])
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def copy_of(root: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """A copy of what git tracks or would add, that Python imports before the installed package."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name)
    # Installed, the games are a package inside the package; here they must be the copy's own.
    (folder / "pohp_neurd" / "games").symlink_to(folder / "games")
    cache = root / ".cache"
    cache.mkdir(exist_ok=True)
    (folder / ".cache").symlink_to(cache.resolve())
    for name in ("pohp_neurd", "pohp_neurd.games"):
        command = [
            sys.executable,
            "-c",
            f"from importlib import util; print(util.find_spec({name!r}).origin)",
        ]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        place = subprocess.run(
            command, cwd=folder, env=environment, check=True, capture_output=True, text=True
        )
        if not place.stdout.startswith(str(folder)):
            raise SystemExit(f"the copy is not what Python imports, but {place.stdout.strip()}.")
    return folder


def _pytest(folder: str, output: str, names: list[str]) -> None:
    """The body of a process that runs tests in `folder` and ends with pytest's exit code."""
    import pytest

    os.chdir(folder)
    sys.path.insert(0, folder)
    os.environ |= {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    with open(output, "w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.exit(int(pytest.main(["-q", "-p", "no:cacheprovider", *names])))


class Run(NamedTuple):
    """What pytest said."""

    code: int | None
    """None where it did not come to an end."""
    output: str


def _run(folder: pathlib.Path, names: list[str]) -> Run:
    """Runs pytest in `folder`, in a process of its own.

    Forked from one that has loaded all libraries but not ours: most of a quick test is their import.
    """
    with tempfile.NamedTemporaryFile(prefix="mutant_", suffix=".txt") as file:
        process = _context().Process(target=_pytest, args=(str(folder), file.name, names))
        process.start()
        process.join(_SECONDS)
        ended = process.exitcode is not None
        if not ended:
            process.kill()
            process.join()
        return Run(process.exitcode if ended else None, pathlib.Path(file.name).read_text(errors="replace"))


@functools.cache
def _context() -> multiprocessing.context.ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["jax", "haiku", "optax", "scipy.special", "pyspiel"])
    return context


def _failed(output: str) -> list[str]:
    return re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)


def _verdict(folder: pathlib.Path, names: list[str]) -> Verdict:
    """Whether one of these tests fails: that catches the mutant."""
    run = _run(folder, ["-x", "-m", "not slow", *names])
    if run.code is None:
        return Verdict(CAUGHT, "a test that does not end")
    if run.code in (0, 5):  # 5: there was none, as in a file without examples
        return Verdict(SURVIVED, "")
    failed = _failed(run.output)
    if run.code == 1 and failed:
        return Verdict(CAUGHT, failed[0])
    return Verdict(BROKEN, textwrap.shorten(run.output[-400:], 200))


def judge(mutant: Mutant, folder: pathlib.Path, *, narrow: bool = False) -> Verdict:
    """The verdict on one mutant, in a copy that is afterwards what it was; `narrow` as the flag says."""
    path = folder / mutant.file
    original = path.read_text(encoding="utf-8")
    count = original.count(mutant.old)
    if count != 1:
        return Verdict(STALE, f"its old text occurs {count} times")
    path.write_text(original.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        named = [f"tests/{name}" for name in mutant.tests.split()]
        files = sorted({name.split("::")[0] for name in named})
        folders = sorted({(folder / name).parent for name in files})
        others = [
            str(test.relative_to(folder)) for place in folders for test in sorted(place.glob("test_*.py"))
        ]
        others = [name for name in others if name not in files]
        # What should notice; then the files that it is in, and the changed file's examples; then all others.
        stages = [named, [*(files if files != sorted(named) else []), mutant.file], [] if narrow else others]
        found = Verdict(SURVIVED, "")
        for names in filter(None, stages):
            found = _verdict(folder, names)
            if found.verdict != SURVIVED:
                break
        return found
    finally:
        path.write_text(original, encoding="utf-8")


def unsound(rows: list[dict[str, str]], folder: pathlib.Path) -> set[str]:
    """The tests that catch mutants and fail without them too: what they caught is not caught."""
    names = sorted({row["by"] for row in rows if row["verdict"] == CAUGHT and "::" in row["by"]})
    if not names:
        return set()
    run = _run(folder, names)
    if run.code not in (0, 1):
        raise SystemExit(f"the tests cannot be run without a mutant: {run.output[-2000:]}")
    return set(_failed(run.output))


def read(path: pathlib.Path) -> dict[str, dict[str, str]]:
    """Rows of an earlier run, by mutant."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["mutant"]: row for row in csv.DictReader(file)}


def markdown(rows: list[dict[str, str]]) -> str:
    """The table of docs/testing.md."""
    accepted = {mutant.name: mutant.accepted for mutant in MUTANTS}
    lines = ["| change | in | caught by |", "|---|---|---|"]
    for row in rows:
        if row["verdict"] == CAUGHT:
            by = f"`{row['by'].removeprefix('tests/').partition('[')[0]}`"
        else:
            by = f"**{row['verdict']}**: {row['by'] or accepted[row['mutant']]}"
        lines.append(f"| {row['mutant']} | `{row['file'].removeprefix('pohp_neurd/')}` | {by} |")
    return "\n".join(lines)


def main() -> int:
    """Judges all mutants, or those that are named; 1 if more survive than may, or one cannot be judged."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="part of a mutant's name; again for more"
    )
    parser.add_argument(
        "--results",
        type=pathlib.Path,
        default=ROOT / ".cache" / "mutants.csv",
        help="rows, as they are found",
    )
    parser.add_argument("--fresh", action="store_true", help="judge again what has a row already")
    parser.add_argument(
        "--narrow", action="store_true", help="run the named tests and their files, not their folders"
    )
    parser.add_argument("--workers", type=int, choices=(1, 2), default=1)
    parser.add_argument(
        "--table", action="store_true", help="print the table of docs/testing.md, and judge nothing"
    )
    flags = parser.parse_args()
    chosen = [m for m in MUTANTS if not flags.only or any(part in m.name for part in flags.only)]
    if not chosen:
        parser.error(f"no mutant's name holds {' or '.join(flags.only)}.")
    known = {} if flags.fresh else read(flags.results)
    if flags.table:
        print(markdown([known[mutant.name] for mutant in chosen if mutant.name in known]))
        return 0
    digests = {mutant.name: digest(mutant, ROOT) for mutant in chosen}

    def is_settled(mutant: Mutant) -> bool:
        row = known.get(mutant.name)
        # What was not caught is judged again: there may be a new test.
        return row is not None and row["verdict"] == CAUGHT and row["digest"] == digests[mutant.name]

    waiting = [mutant for mutant in chosen if not is_settled(mutant)]
    lock = threading.Lock()

    def write(row: dict[str, str] | None = None) -> None:
        with lock:
            if row is not None:
                known[row["mutant"]] = row
            flags.results.parent.mkdir(parents=True, exist_ok=True)
            partial = flags.results.with_suffix(".partial")
            with partial.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, _COLUMNS)
                writer.writeheader()
                writer.writerows(known.values())
            partial.replace(flags.results)

    with tempfile.TemporaryDirectory(prefix="mutants_") as temporary:
        copies: queue.Queue[pathlib.Path] = queue.Queue()
        for number in range(flags.workers):
            folder = pathlib.Path(temporary).resolve() / str(number)
            folder.mkdir()
            copies.put(copy_of(ROOT, folder))

        def one(mutant: Mutant) -> Verdict:
            folder = copies.get()
            try:
                found = judge(mutant, folder, narrow=flags.narrow)
            finally:
                copies.put(folder)
            row = dict(zip(_COLUMNS, (mutant.name, mutant.file, digests[mutant.name], *found), strict=True))
            write(row)
            return found

        with (
            concurrent.futures.ThreadPoolExecutor(flags.workers) as pool,
            tqdm.tqdm(total=len(waiting), unit="mutant") as progress,
        ):
            running = {pool.submit(one, mutant): mutant for mutant in waiting}
            try:
                for done in concurrent.futures.as_completed(running):
                    found = done.result()
                    progress.write(f"{found.verdict:9} {running[done].name}   {found.by}")
                    progress.update()
            except BaseException:
                pool.shutdown(cancel_futures=True)  # one that is stopped does not judge all others first
                raise
        rows = [known[mutant.name] for mutant in chosen]
        failing = unsound(rows, copies.get())
    for row in rows:
        if row["verdict"] == CAUGHT and row["by"] in failing:
            row |= {"verdict": BROKEN, "by": f"{row['by']} fails without the change too"}
    write()
    counts = {kind: sum(row["verdict"] == kind for row in rows) for kind in (CAUGHT, SURVIVED, STALE, BROKEN)}
    print(
        ", ".join(f"{count} {kind}" for kind, count in counts.items()),
        f"of {len(rows)}; rows in {flags.results}",
    )
    for row in rows:
        if row["verdict"] != CAUGHT:
            print(f"{row['verdict']}: {row['mutant']} ({row['file']}) {row['by']}")
    unexplained = [m.name for m in chosen if known[m.name]["verdict"] == SURVIVED and not m.accepted]
    return int(bool(unexplained or counts[STALE] or counts[BROKEN]) or counts[SURVIVED] > MAX_SURVIVORS)


if __name__ == "__main__":
    sys.exit(main())
