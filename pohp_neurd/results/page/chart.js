/* Curves in SVG: a pointer or the arrow keys move along them, axes are linear or logarithmic. */

const DASHES = ["", "7 3", "2 3", "9 3 2 3", "4 2", "1 2"];

function ticks(low, high, log) {
  if (log) {
    const found = [];
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
    const inner = last - first > 2 ? [1] : last - first > 1 ? [1, 3] : [1, 2, 5];
    for (let power = first; power <= last; power++) for (const digit of inner) found.push(digit * 10 ** power);
    const inside = found.filter((value) => value >= low * 0.999 && value <= high * 1.001);
    return inside.length > 1 ? inside : ticks(low, high, false);
  }
  const raw = (high - low) / 5 || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((digit) => digit * power >= raw) * power;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

function tickText(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  return size > 0 && size < 1e-3 ? value.toExponential(0) : String(+value.toPrecision(3));
}

/* A scale from numbers to places; of no use for a logarithm are numbers that are not positive. */
function scale(values, log, from, to, room) {
  const known = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  let low = Math.min(...extremes(known)), high = Math.max(...extremes(known));
  if (!known.length) [low, high] = [log ? 0.1 : 0, 1];
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
  else if (room && !log) [low, high] = [low < 0 || low > 0.3 * high ? low - 0.05 * (high - low) : 0, high + 0.05 * (high - low)];
  const at = log ? Math.log : (value) => value;
  const place = (value) => from + (at(value) - at(low)) / (at(high) - at(low)) * (to - from);
  return { place, low, high, ticks: ticks(low, high, log), shows: (value) => Number.isFinite(value) && (!log || value > 0) };
}

function extremes(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) { if (value < low) low = value; if (value > high) high = value; }
  return [low, high];
}

/* series: [{name, group, colour, x, y, band}], of equal lengths x and y within each. */
function chart(title, xName, series, logs) {
  const box = h("div", { class: "plot" }), readout = h("output", { class: "readout", "aria-live": "polite" });
  const groups = [...new Map(series.map((each) => [each.group, each])).values()];
  const legend = h("div", { class: "legend" }, groups.map((each) => h("span", {},
    s("svg", { width: 26, height: 8, "aria-hidden": "true" }, s("line", { x1: 0, x2: 26, y1: 4, y2: 4, ...stroke(each) })), each.group)));
  const figure = h("figure", { "data-chart": title }, h("h3", {}, title), box, legend, readout);
  let at = null;

  function draw() {
    const width = Math.max(240, box.clientWidth || 340), height = 210, left = 48, bottom = 34;
    const logY = logs.y && series.some((each) => each.y.some((value) => value > 0)); // losses have no logarithm
    const x = scale(series.flatMap((each) => each.x), logs.x, left, width - 12, false);
    const y = scale(series.flatMap((each) => (each.band && !logY ? each.y.flatMap((value, k) => [value - each.band[k], value + each.band[k]]) : each.y)), logY, height - bottom, 8, true);
    const root = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, tabindex: 0, role: "img",
      "aria-label": `${title} over ${xName}; arrow keys move along the curves` });
    for (const value of y.ticks) root.append(s("line", { class: "grid", x1: left, x2: width - 12, y1: y.place(value), y2: y.place(value) }),
      s("text", { x: left - 6, y: y.place(value) + 4, "text-anchor": "end" }, tickText(value)));
    const apart = Math.max(1, Math.ceil(x.ticks.length * 52 / (width - left)));
    x.ticks.forEach((value, index) => index % apart || root.append(s("text", { x: x.place(value), y: height - bottom + 16,
      "text-anchor": x.place(value) > width - 28 ? "end" : "middle" }, tickText(value))));
    root.append(s("path", { class: "axis", d: `M${left} 8V${height - bottom}H${width - 12}` }),
      s("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, xName));
    for (const each of series) {
      const shown = each.x.map((_, k) => k).filter((k) => x.shows(each.x[k]) && y.shows(each.y[k]));
      const line = shown.map((k) => `${x.place(each.x[k]).toFixed(1)},${y.place(each.y[k]).toFixed(1)}`);
      if (each.band && !logY) {
        const edge = (sign, k) => `${x.place(each.x[k])},${y.place(each.y[k] + sign * each.band[k])}`;
        const around = [...shown.map((k) => edge(1, k)), ...shown.reverse().map((k) => edge(-1, k))];
        root.append(s("polygon", { points: around.join(" "), fill: each.colour, opacity: 0.18 }));
      }
      if (line.length > 1) root.append(s("polyline", { points: line.join(" "), fill: "none", ...stroke(each) }));
      else if (line.length) root.append(s("circle", { cx: line[0].split(",")[0], cy: line[0].split(",")[1], r: 3, fill: each.colour }));
    }
    const cross = s("line", { class: "axis", y1: 8, y2: height - bottom, visibility: "hidden" });
    const dots = s("g");
    root.append(cross, dots);
    const places = [...new Set(series.flatMap((each) => each.x))].filter(x.shows).sort((a, b) => a - b);

    function show(value, height) {
      at = value;
      cross.setAttribute("visibility", "visible");
      for (const end of ["x1", "x2"]) cross.setAttribute(end, x.place(value));
      const here = series.map((each) => ({ ...each, now: each.y[each.x.indexOf(value)] }))
        .filter((each) => each.now !== undefined && Number.isFinite(each.now));
      dots.replaceChildren(...here.filter((each) => y.shows(each.now)).map((each) =>
        s("circle", { cx: x.place(value), cy: y.place(each.now), r: 3, fill: each.colour })));
      const told = groups.map(({ group }) => {
        const members = here.filter((each) => each.group === group);
        if (!members.length) return null;
        if (members.length === 1) return [`${group} `, number(members[0].now), members[0].band ? [" ± ", number(members[0].band[members[0].x.indexOf(value)])] : []];
        const values = members.map((each) => each.now);
        const mean = values.reduce((a, b) => a + b) / values.length, [low, high] = extremes(values);
        const near = height === undefined ? null : members.reduce((best, each) =>
          Math.abs(y.place(each.now) - height) < Math.abs(y.place(best.now) - height) ? each : best);
        return [`${group}: mean `, number(mean), ", ", number(low), " to ", number(high), near ? [`; ${near.name} `, number(near.now)] : []];
      }).filter(Boolean);
      readout.replaceChildren(`${xName} `, number(value), ": ", ...told.flatMap((part, k) => [k ? "; " : "", part]).flat(Infinity));
    }
    const nearest = (pixel) => places.reduce((best, value) => Math.abs(x.place(value) - pixel) < Math.abs(x.place(best) - pixel) ? value : best, places[0]);
    root.addEventListener("pointermove", (event) => {
      const area = root.getBoundingClientRect(), ratio = width / area.width;
      if (places.length) show(nearest((event.clientX - area.left) * ratio), (event.clientY - area.top) * ratio);
    });
    root.addEventListener("keydown", (event) => {
      const move = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
      if (!move || !places.length) return;
      event.preventDefault();
      const now = at === null ? (move > 0 ? -1 : places.length) : places.indexOf(at);
      show(places[Math.min(places.length - 1, Math.max(0, now + move))]);
    });
    box.replaceChildren(root);
    if (at !== null && places.includes(at)) show(at);
  }
  return { figure, draw };
}

function stroke(each) {
  return { stroke: each.colour, "stroke-width": each.thin ? 1 : 2, "stroke-dasharray": each.dash || null, opacity: each.thin ? 0.7 : 1 };
}

const COUNTS = ["updates", "episodes", "steps", "seconds"];
const SETTING = ["learning_rate", "exploration", "seed"];
const TITLES = { nash_conv: "NashConv", nash_conv_average: "NashConv, average policy", entropy: "Entropy", capped: "Fraction capped",
  weight: "Importance weights", mean_weight: "Mean importance weight", max_weight: "Largest importance weight",
  advantage_scale: "Update size (RMS of directions)", reward: "Reward per interval", total_reward: "Accumulated reward",
  critic_error: "Critic error (RMS)", return_against_uniform: "Return against uniform", mean_return: "Mean return",
  half_width: "± (95% interval)" };

function title(column) {
  return TITLES[column] || column.replaceAll("_", " ");
}

/* Columns that are drawn together. */
function panel(column) {
  if (column.startsWith("nash_conv")) return "nash_conv";
  return column.endsWith("_weight") ? "weight" : column;
}

/* Every run's columns, cut into one series for each setting and seed. */
function lines(runs, xName) {
  const found = new Map();
  runs.forEach((run, place) => {
    const cut = SETTING.every((name) => run.column[name]);
    const rows = new Map();
    for (let row = 0; row < run.length; row++) {
      const key = cut ? SETTING.map((name) => run.column[name][row]).join() : "";
      if (!rows.has(key)) rows.set(key, []);
      rows.get(key).push(row);
    }
    const settings = [...new Set([...rows.keys()].map((key) => key.split(",").slice(0, 2).join()))];
    for (const name of run.columns.filter((each) => ![...COUNTS, ...SETTING, "half_width"].includes(each))) {
      if (!run.column[name].some(Number.isFinite)) continue;
      const list = found.get(panel(name)) || [];
      found.set(panel(name), list);
      for (const [key, members] of rows) {
        const [rate, exploration, seed] = key.split(",");
        const which = { nash_conv: "current", nash_conv_average: "average" }[name] || (panel(name) === name ? "" : name.replace("_", " "));
        const each = runs.length * settings.length === 1 && rows.size <= DASHES.length; // so few that every seed has its colour
        const setting = !cut ? which : each ? `seed ${seed}` : `rate ${rate}, exploration ${exploration}`;
        const index = cut && !each ? place * settings.length + settings.indexOf(`${rate},${exploration}`) : new Set(list.map((other) => other.group)).size;
        list.push({
          name: `seed ${seed}`, group: [runs.length > 1 || !setting ? run.name : "", setting].filter(Boolean).join(", "),
          colour: `var(--c${index % 6})`, dash: DASHES[index % 6], thin: cut && !each && rows.size > settings.length,
          x: members.map((row) => run.column[xName][row]), y: members.map((row) => run.column[name][row]),
          band: run.column.half_width && /return/.test(name) ? members.map((row) => run.column.half_width[row]) : null,
        });
      }
    }
  });
  return found;
}

function curves(runs) {
  const logs = { x: false, y: false }, holder = h("div", { class: "charts" });
  const counted = COUNTS.filter((name) => runs.every((run) => run.column[name] && run.column[name].some((value) => value > 0)));
  let xName = ["episodes", "steps", "updates"].find((name) => counted.includes(name)) || counted[0], drawn = [];
  const axis = choice("x axis", counted.map((name) => [name, name]), (name) => { xName = name; make(); });
  axis.select.value = xName;
  const tick = (text, key) => h("label", {}, h("input", { type: "checkbox", "data-log": key,
    onchange: (event) => { logs[key] = event.target.checked; drawn.forEach((each) => each.draw()); } }), text);
  function make() {
    drawn = [...lines(runs, xName)].map(([name, series]) => chart(title(name), xName, series, logs));
    holder.replaceChildren(...drawn.map((each) => each.figure));
    drawn.forEach((each) => each.draw());
  }
  addEventListener("resize", () => drawn.forEach((each) => each.draw()));
  return { element: h("div", {}, h("div", { class: "controls" }, axis.element, tick("log x", "x"), tick("log y", "y")), holder), make };
}
