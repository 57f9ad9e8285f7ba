/* The page itself. */

function section(id, title, ...children) {
  document.getElementById("sections").append(h("a", { href: `#${id}` }, title));
  const made = h("section", { id, "aria-label": title }, h("h2", {}, title), children);
  document.getElementById("main").append(made);
  return made;
}

async function readRun(packed) {
  const cells = await unpacked(packed.metrics), width = packed.columns.length, length = cells.length / width;
  const column = Object.fromEntries(packed.columns.map((name, k) => [name, Array.from({ length }, (_, row) => cells[row * width + k])]));
  return { ...packed, column, length };
}

/* A column in the last rows, of which there is one for every seed and setting. */
function atEnd(run, name) {
  const end = run.column.steps.at(-1), last = run.column[name].filter((_, row) => !run.column.seed || run.column.steps[row] === end);
  return run.column.seed ? last.reduce((a, b) => a + b) / last.length : last.at(-1);
}

function summary(data, runs, policies, game) {
  const dynamic = (value) => (value === null ? "none" : Array.isArray(value) ? value.join(", ") : String(value));
  const last = h("table", { id: "final" }, h("thead", {}, h("tr", {}, h("th", {}, runs[0].column.seed ? "At the end, mean over runs" : "At the end"), runs.map((run) => h("th", { class: "number" }, run.name)))),
    h("tbody", {}, runs[0].columns.filter((name) => !SETTING.includes(name) && runs.some((run) => run.column[name] && Number.isFinite(atEnd(run, name)) && (atEnd(run, name) || !COUNTS.includes(name)))).map((name) =>
      h("tr", { "data-column": name }, h("th", {}, title(name)), runs.map((run) => h("td", { class: "number" }, run.column[name] ? number(atEnd(run, name), name === "seconds" ? atEnd(run, name).toFixed(1) : undefined) : "–"))))));
  const judged = policies.length ? h("table", { id: "judged" }, h("thead", {}, h("tr", {}, h("th", {}, "Policy"), h("th", { class: "number" }, "NashConv"),
    policies[0].returns.map((_, k) => h("th", { class: "number" }, `Return, player ${k}`)))),
  h("tbody", {}, policies.map((each) => h("tr", {}, h("th", {}, policyName(policies, each)), h("td", { class: "number" }, each.nashConv === null ? "–" : number(each.nashConv, each.nashConv.toFixed(6))),
    each.returns.map((value) => h("td", { class: "number" }, fixed(value))))))) : null;
  return [
    game ? h("p", {}, `${game.name.replace("()", "")}: ${game.about}, ${game.numAgents} players. All values are exact.`) : null,
    data.left_out ? h("p", { id: "left-out" }, data.left_out) : null,
    h("div", { class: "tables" }, [judged, last].filter(Boolean).map((table) => h("div", { class: "scroll" }, table))),
    runs.map((run) => h("details", { open: runs.length === 1 && innerWidth > 700 }, h("summary", {}, `Settings of ${run.name}`),
      h("dl", { class: "settings" }, Object.entries(run.config).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, dynamic(value))))))),
    h("p", { class: "note" }, `This page was made with ${Object.entries(data.versions).map(([name, version]) => `${name} ${version}`).join(", ")}.`)];
}

async function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const runs = await Promise.all(data.runs.map(readRun));
  const what = runs[0].config.game || runs[0].config.environment;
  document.title = document.getElementById("title").textContent = `${what}: ${runs.map((run) => run.name).join(" and ")}`;
  const game = data.game ? await readGame(data.game) : null;
  const policies = game ? await Promise.all(data.policies.map((each) => readPolicy(game, each))) : [];
  document.getElementById("wait").remove();
  section("run", "What was run", summary(data, runs, policies, game));
  const drawn = curves(runs);
  section("curves", "Learning curves", drawn.element);
  drawn.make();
  if (game) {
    const walking = data.game.walk ? walk(game, policies) : null;
    section("states", "State by state", states(game, policies, walking && walking.to));
    if (walking) section("walk", "Walk the game", walking.element);
  }
  if (data.maps) section("maps", "What the policy does", await maps(data.maps, runs));
  addEventListener("beforeprint", () => document.querySelectorAll("#run details").forEach((each) => { each.open = true; }));
  document.body.dataset.ready = "true";
}

function themes() {
  const button = document.getElementById("theme"), all = [["", "as the system"], ["light", "light"], ["dark", "dark"]];
  let place = 0;
  button.addEventListener("click", () => {
    place = (place + 1) % all.length;
    if (all[place][0]) document.documentElement.dataset.theme = all[place][0];
    else delete document.documentElement.dataset.theme;
    button.textContent = `Theme: ${all[place][1]}`;
  });
}

themes();
start().catch((error) => {
  document.getElementById("main").append(h("p", { role: "alert" }, `This page could not be drawn: ${error.message}`));
  throw error;
});
