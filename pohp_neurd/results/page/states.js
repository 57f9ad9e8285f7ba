/* All information states, the weakest first. */

const PAGE = 25;

function states(game, policies, walkTo) {
  const list = h("div", { id: "list" }), told = h("output", { "aria-live": "polite", id: "found" });
  const more = h("button", { type: "button", onclick: () => { shown += PAGE; draw(); } }, "Show more");
  let policy = policies[policies.length > 1 && policies[1].run === policies[0].run ? 1 : 0], player = "", order = policy.gain ? "gain" : "reached", wanted = [], shown = PAGE;
  let texts = null;
  const described = (state) => parts(game.name, game.strings[state], game.pictures[state]);
  const search = h("input", { type: "search", id: "search", placeholder: "words that a state must have",
    oninput: () => { wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean); shown = PAGE; draw(); } });
  const which = choice("Policy", policies.map((each, k) => [k, policyName(policies, each)]), (k) => { policy = policies[k]; draw(); });
  which.select.value = policies.indexOf(policy);
  const players = choice("Player", [["", "all"], ...Array.from({ length: game.numAgents }, (_, k) => [k, `player ${k}`])],
    (value) => { player = value; shown = PAGE; draw(); });
  players.select.id = "player";
  const orders = choice("Sorted by", [...(policy.gain ? [["gain", "what a best response gains"]] : []), ["reached", "how often reached"], ["none", "the game's own order"]],
    (value) => { order = value; draw(); });

  function matches(state) {
    if (player !== "" && game.player[game.histories[state][0]] !== +player) return false;
    if (!wanted.length) return true;
    texts = texts || game.strings.map((text, each) => `${text} ${described(each).map(plain).join(" ")}`.toLowerCase());
    return wanted.every((word) => texts[state].includes(word));
  }

  function one(state, rank) {
    const row = game.histories[state][0];
    return h("article", { class: "state", "data-state": state },
      h("header", {}, h("strong", {}, `${rank}.`), h("span", {}, `player ${game.player[row]}`),
        policy.gain ? h("span", {}, "a best response gains ", number(policy.gain[state])) : null,
        h("span", {}, "reached ", number(policy.reached[state], percent(policy.reached[state]))),
        walkTo ? h("button", { type: "button", onclick: () => walkTo(row, policies.indexOf(policy)) }, "Walk from here") : null),
      h("div", {}, drawn(described(state)), h("details", {}, h("summary", { class: "note" }, "as OpenSpiel writes it"), h("div", { class: "raw" }, game.strings[state]))),
      h("div", { class: "beside" }, policies.map((each) => actionTable(game, each, state, policyName(policies, each)))));
  }

  function draw() {
    const found = game.strings.map((_, state) => state).filter(matches);
    if (order !== "none") found.sort((a, b) => policy[order][b] - policy[order][a] || a - b);
    let sum = 0;
    if (policy.gain) for (const state of found) sum += policy.gain[state];
    told.replaceChildren(`${short(found.length)} of ${short(game.strings.length)} states`,
      ...(policy.gain ? ["; best responses gain ", h("span", { id: "gains" }, number(sum, sum.toFixed(8))), " there; NashConv is ",
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
      ? "At each state a best response gains its value from there on, less that of the policy's own choice followed by the best response, times how often the policy comes there. None of these is negative, and over all states and players they add up to NashConv. The first state is where the policy is weakest."
      : policy.leftOut || ""),
    h("p", { class: "note" }, `Values and advantages are the policy's own, in the game's units, for the player who acts.${policy.answer ? " ★ is a best response's choice." : ""} Press / to search.`),
    h("div", { class: "controls" }, h("label", {}, "Search", search), players.element, orders.element, which.element), h("p", {}, told), list, more);
}
