/* The game step by step, for somebody who sees everything; what the player to move believes stands beside it. */

function walk(game, policies) {
  const element = h("div", { id: "walking" });
  let policy = usual(policies), row = 0;
  const which = choice("Policy", policies.map((each, k) => [k, policyName(policies, each)]), (k) => { policy = policies[k]; draw(); });
  which.select.value = policies.indexOf(policy);
  const name = (step) => stepName(game.name, game.player[game.parent[step]], game.names[game.step[step]]);
  const go = (to) => { row = to; draw(); (element.querySelector(".choose") || element.querySelector("#again")).focus({ preventScroll: true }); };

  function children() {
    return Array.from({ length: game.numChildren[row] }, (_, k) => game.firstChild[row] + k);
  }

  function sampled() {
    let left = Math.random();
    const all = children();
    return all.find((child) => (left -= stepProbability(game, policy, child)) < 0) ?? all.at(-1);
  }

  function crumbs() {
    return h("ol", { class: "path", "aria-label": "Steps so far" },
      h("li", {}, h("button", { type: "button", id: "again", onclick: () => go(0) }, "Start")),
      path(game, row).map((step) => h("li", {}, h("button", { type: "button", onclick: () => go(step.row) },
        step.label === step.name ? `chance: ${step.name}` : step.label))));
  }

  function options() {
    const choose = (k, text) => h("button", { type: "button", class: "choose", onclick: () => go(game.firstChild[row] + k) }, text);
    const player = game.player[row];
    if (player >= 0) return actionTable(game, policy, game.state[row], `${policyName(policies, policy)}, player ${player}`, choose);
    return h("table", { class: "actions" }, h("caption", {}, "Chance"), h("tbody", {}, children().map((child, k) =>
      h("tr", {}, h("td", {}, choose(k, name(child))), h("td", {}, bar(game.chance[child]))))));
  }

  function believed() {
    const { note, rows, belief } = beliefs(game, policy, game.state[row]);
    const paths = rows.map((each) => path(game, each).map((step) => step.label));
    const differs = (place) => new Set(paths.map((each) => each[place])).size > 1;
    const sums = new Map();
    const key = (each) => each.filter((_, place) => differs(place)).join(", ") || "what has been seen";
    rows.forEach((_, k) => sums.set(key(paths[k]), (sums.get(key(paths[k])) || 0) + belief[k]));
    const real = key(path(game, row).map((step) => step.label)), most = [...sums].sort((a, b) => b[1] - a[1]);
    const table = h("table", { class: "actions", id: "beliefs" }, h("caption", {}, `Beliefs of player ${game.player[row]} about what is hidden`),
      h("tbody", {}, most.slice(0, 20).map(([text, share]) => h("tr", {}, h("td", {}, text, text === real ? h("span", { class: "best" }, " ← actual") : ""), h("td", {}, bar(share))))));
    return [table, most.length > 20 ? h("p", { class: "note" }, `and ${short(most.length - 20)} others, less likely.`) : null, note ? h("p", { class: "note" }, note) : null];
  }

  function draw() {
    const { reach, value } = sweep(game, policy), agents = Array.from({ length: game.numAgents }, (_, k) => k);
    const earned = agents.map((agent) => { let sum = 0; for (let at = row; at >= 0; at = game.parent[at]) sum += game.rewards[at * agents.length + agent]; return sum; });
    const over = !game.numChildren[row], state = game.state[row];
    const returns = h("table", { id: "returns" }, h("caption", {}, over ? "Final returns" : "Expected returns from here"), h("tbody", {},
      agents.map((agent) => h("tr", {}, h("th", {}, `player ${agent}`), h("td", { class: "number" }, fixed(earned[agent] + value[row * agents.length + agent]))))));
    element.replaceChildren(
      h("div", { class: "controls" }, which.element,
        over ? null : h("button", { type: "button", onclick: () => go(sampled()) }, game.player[row] < 0 ? "Sample chance" : "Sample the policy"),
        row ? h("button", { type: "button", onclick: () => go(game.parent[row]) }, "Back") : null),
      crumbs(),
      h("div", { class: "walk" },
        h("div", {}, h("h3", {}, over ? "The game is over" : state < 0 ? "Chance moves" : `Player ${game.player[row]} to move, seeing`),
          state < 0 ? null : drawn(parts(game, state)), returns,
          h("p", { class: "note" }, "Probability of this history: ", number(reach[row], percent(reach[row]))),
          state >= 0 && policy.gain ? h("p", { class: "note" }, "Best-response gain at this state: ", fixed(policy.gain[state])) : null),
        over ? h("div", {}, h("p", {}, "Start again, or go back to any step above.")) : h("div", {}, options()),
        state < 0 ? null : h("div", { class: "wide" }, believed())));
  }
  element.addEventListener("keydown", (event) => {
    if (/INPUT|SELECT/.test(event.target.tagName) || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Backspace" && row) { event.preventDefault(); go(game.parent[row]); }
    if (/^[1-9]$/.test(event.key) && +event.key <= game.numChildren[row]) go(game.firstChild[row] + +event.key - 1);
  });
  draw();
  const to = (where, index) => { policy = policies[index]; which.select.value = index; document.getElementById("walk").scrollIntoView(); go(where); };
  return { element: h("div", {}, h("p", { class: "note" }, "Click an action or an outcome of chance, or press its number (1 to 9); Backspace goes back."), element), to };
}
