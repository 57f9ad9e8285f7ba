/* The game as arrays: every history a row, parents before their children, children side by side. */

const CHANCE = -1;

async function readGame(packed) {
  const game = { name: packed.name, numAgents: packed.num_agents, about: packed.about, deals: 0 };
  for (const name of ["step", "parent", "action", "player", "state", "chance", "rewards"]) game[name] = await unpacked(packed[name]);
  for (const name of ["names", "strings", "pictures"]) game[name] = await unpackedText(packed[name]);
  const size = game.parent.length;
  game.firstChild = new Int32Array(size);
  game.numChildren = new Int32Array(size);
  for (let row = size - 1; row > 0; row--) { game.firstChild[game.parent[row]] = row; game.numChildren[game.parent[row]]++; }
  // Cards and dice that are dealt before the first decision, so many to each player.
  if (/^(kuhn_poker|leduc_poker|liars_dice)/.test(game.name)) for (let row = 0; game.player[row] === CHANCE; row = game.firstChild[row]) game.deals++;
  game.histories = game.strings.map(() => []);
  for (let row = 0; row < size; row++) if (game.state[row] >= 0) game.histories[game.state[row]].push(row);
  // Where the choices of each state stand among those of all states.
  game.offset = new Int32Array(game.strings.length + 1);
  game.histories.forEach((rows, state) => { game.offset[state + 1] = game.offset[state] + game.numChildren[rows[0]]; });
  return game;
}

async function readPolicy(game, packed) {
  const policy = { run: packed.run, which: packed.which, nashConv: packed.nash_conv, returns: packed.returns, leftOut: packed.left_out };
  for (const [name, key] of [["probability", "probability"], ["actionValue", "action_value"], ["reached", "reached"], ["gain", "gain"], ["answer", "answer"]])
    policy[name] = packed[key] ? await unpacked(packed[key]) : null;
  policy.value = Float64Array.from(game.strings, (_, state) => {
    let sum = 0;
    for (let k = game.offset[state]; k < game.offset[state + 1]; k++) sum += policy.probability[k] * policy.actionValue[k];
    return sum;
  });
  return policy;
}

/* The probability of the last step to a history. */
function stepProbability(game, policy, row) {
  const above = game.parent[row], state = game.state[above];
  return state < 0 ? game.chance[row] : policy.probability[game.offset[state] + row - game.firstChild[above]];
}

/* Reach of every history, as if an agent had done all to come there too, and every agent's return from there. */
function sweep(game, policy) {
  if (policy.sweep) return policy.sweep;
  const size = game.parent.length, agents = game.numAgents;
  const reach = new Float64Array(size), tried = new Float64Array(size * agents).fill(1), value = new Float64Array(size * agents);
  reach[0] = 1;
  for (let row = 1; row < size; row++) {
    const above = game.parent[row], chance = stepProbability(game, policy, row);
    reach[row] = reach[above] * chance;
    for (let agent = 0; agent < agents; agent++)
      tried[row * agents + agent] = tried[above * agents + agent] * (game.player[above] === agent ? 1 : chance);
  }
  for (let row = size - 1; row > 0; row--) {
    const chance = stepProbability(game, policy, row);
    for (let agent = 0; agent < agents; agent++)
      value[game.parent[row] * agents + agent] += chance * (game.rewards[row * agents + agent] + value[row * agents + agent]);
  }
  return (policy.sweep = { reach, tried, value });
}

/* The histories of a state with their beliefs; where it is never reached, those of an agent that tries. */
function beliefs(game, policy, state) {
  const { reach, tried } = sweep(game, policy), rows = game.histories[state], agent = game.player[rows[0]];
  const sum = (weights) => weights.reduce((a, b) => a + b, 0);
  const kinds = [["", rows.map((row) => reach[row])],
    ["The policy never comes here: these are the beliefs of one who tries to.", rows.map((row) => tried[row * game.numAgents + agent])],
    ["Nobody lets this state happen: all its histories count the same.", rows.map(() => 1)]];
  const [note, weights] = kinds.find(([, each]) => sum(each) > 0), total = sum(weights);
  return { note, rows, belief: weights.map((weight) => weight / total) };
}

/* The steps to a history: [{row, player, name, label}]. */
function path(game, row) {
  const found = [];
  for (; row > 0; row = game.parent[row]) {
    const player = game.player[game.parent[row]];
    found.push({ row, player, name: stepName(game.name, player, game.names[game.step[row]]) });
  }
  return found.reverse().map((step, place) => ({ ...step, label: step.player >= 0 ? `player ${step.player}: ${step.name}`
    : place < game.deals ? `player ${Math.floor(place * game.numAgents / game.deals)} has ${step.name}` : step.name }));
}

/* The policy that is looked at first, as `evaluate` judges it: the average; without one, the best. */
function usual(policies) {
  const mine = policies.filter((each) => each.run === policies[0].run);
  return ["average", "best"].map((which) => mine.find((each) => each.which.includes(which))).find(Boolean) || mine[0];
}

function policyName(policies, policy) {
  return new Set(policies.map((each) => each.run)).size > 1 ? `${policy.run}, ${policy.which}` : policy.which;
}

/* The actions of a state under one policy. `choose` makes a button of each. */
function actionTable(game, policy, state, caption, choose) {
  const row = game.histories[state][0], first = game.firstChild[row], offset = game.offset[state];
  const rows = [];
  for (let k = 0; k < game.numChildren[row]; k++) {
    const best = policy.answer && policy.answer[state] === game.action[first + k], value = policy.actionValue[offset + k];
    const over = value - policy.value[state], advantage = Math.abs(over) < 3e-7 * Math.max(1, Math.abs(value)) ? 0 : over; // values are float32
    const name = stepName(game.name, game.player[row], game.names[game.step[first + k]]);
    rows.push(h("tr", {}, h("td", {}, choose ? choose(k, name) : name, best ? h("abbr", { class: "best", title: "a best response's choice" }, " ★") : ""),
      h("td", {}, bar(policy.probability[offset + k])), h("td", { class: "number" }, fixed(value)),
      h("td", { class: "number" }, fixed(advantage))));
  }
  return h("table", { class: "actions", "data-policy": caption }, h("caption", {}, caption, policy.gain ? [" ", h("span", {}, "· gain ", fixed(policy.gain[state]))] : null, " ", h("span", {}, "· value ", fixed(policy.value[state]))),
    h("thead", {}, h("tr", {}, h("th", {}, "Action"), h("th", {}, "Probability"), h("th", { class: "number" }, "Value"), h("th", { class: "number" }, "Advantage"))),
    h("tbody", {}, rows));
}
