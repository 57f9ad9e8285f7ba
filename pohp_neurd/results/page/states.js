/* All information states, the weakest first. */

const PAGE = 25;

function states(game, policies, walkTo) {
  const list = h("div", { id: "list" }), told = h("output", { "aria-live": "polite", id: "found" });
  const more = h("button", { type: "button", onclick: () => { shown += PAGE; draw(); } }, "Show more");
  let policy = usual(policies), player = "", order = policy.gain ? "gain" : "reached", wanted = [], shown = PAGE;
  let texts = null;
  const search = h("input", { type: "search", id: "search", placeholder: "words to find",
    oninput: () => { wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean); shown = PAGE; draw(); } });
  const which = choice("Policy", policies.map((each, k) => [k, policyName(policies, each)]), (k) => { policy = policies[k]; draw(); });
  which.select.value = policies.indexOf(policy);
  const players = choice("Player", [["", "all"], ...Array.from({ length: game.numAgents }, (_, k) => [k, `player ${k}`])],
    (value) => { player = value; shown = PAGE; draw(); });
  players.select.id = "player";
  const orders = choice("Sorted by", [...(policy.gain ? [["gain", "best-response gain"]] : []), ["reached", "reach probability"], ["none", "order of the game"]],
    (value) => { order = value; draw(); });

  function matches(state) {
    if (player !== "" && game.player[game.histories[state][0]] !== +player) return false;
    if (!wanted.length) return true;
    texts = texts || game.strings.map((text, each) => `${text} ${parts(game, each).map(plain).join(" ")}`.toLowerCase());
    return wanted.every((word) => texts[state].includes(word));
  }

  function one(state, rank) {
    const row = game.histories[state][0];
    return h("article", { class: "state", "data-state": state },
      h("header", {}, h("strong", {}, `${rank}.`), h("span", {}, `player ${game.player[row]}`),
        policy.gain ? h("span", {}, "best-response gain ", fixed(policy.gain[state])) : null,
        h("span", {}, "reached ", number(policy.reached[state], percent(policy.reached[state]))),
        walkTo ? h("button", { type: "button", onclick: () => walkTo(row, policies.indexOf(policy)) }, "Walk from here") : null),
      h("div", {}, drawn(parts(game, state)), h("details", {}, h("summary", { class: "note" }, "OpenSpiel's string"), h("div", { class: "raw" }, game.strings[state]))),
      h("div", { class: "beside" }, policies.map((each) => actionTable(game, each, state, policyName(policies, each)))));
  }

  function draw() {
    const found = game.strings.map((_, state) => state).filter(matches);
    if (order !== "none") found.sort((a, b) => policy[order][b] - policy[order][a] || a - b);
    let sum = 0;
    if (policy.gain) for (const state of found) sum += policy.gain[state];
    told.replaceChildren(`${short(found.length)} of ${short(game.strings.length)} states`,
      ...(policy.gain ? ["; their gains sum to ", h("span", { id: "gains" }, number(sum, sum.toFixed(8))), ", NashConv is ",
        h("span", { id: "nash-conv" }, number(policy.nashConv, policy.nashConv.toFixed(8)))] : []), ".");
    list.replaceChildren(...found.slice(0, shown).map((state, k) => one(state, k + 1)));
    more.hidden = shown >= found.length;
  }
  draw();
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !/INPUT|SELECT/.test(document.activeElement.tagName)) { event.preventDefault(); search.focus(); }
  });
  return h("div", {},
    h("p", {}, policy.gain
      ? "The gain at a state is what a best responder wins there over the policy: the best-response value, less that of the policy's choice followed by the best response, times the probability that the policy reaches the state. Gains are never negative and add up to NashConv over all states and players, so the first state is where the policy is weakest."
      : policy.leftOut || ""),
    h("p", { class: "note" }, `Values and advantages are those of the policy in self-play, for the player who acts.${policy.answer ? " ★ marks the best response's action." : ""} Press / to search.`),
    h("div", { class: "controls" }, h("label", {}, "Search", search), players.element, orders.element, which.element), h("p", {}, told), list, more);
}
