/* What a policy of catch or cart pole does: catch board by board, cart pole over angle and angular velocity. */

/* A grid of cells that a pointer or the arrow keys visit. */
function gridMap(columns, rows, size, cell, say, names) {
  const left = 34, top = 6, width = left + columns * size + 6, height = top + rows * size + 34;
  const root = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, tabindex: 0, role: "img", "aria-label": `${names.title}; arrow keys move over the cells` });
  for (let y = 0; y < rows; y++) for (let x = 0; x < columns; x++) root.append(cell(x, y, left + x * size, top + y * size, size));
  root.append(s("text", { x: left + columns * size / 2, y: height - 4, "text-anchor": "middle" }, names.x),
    s("text", { x: 12, y: top + rows * size / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${top + rows * size / 2})` }, names.y),
    names.ticks(left, top, size));
  const mark = s("rect", { width: size, height: size, fill: "none", stroke: "var(--ink)", "stroke-width": 2, visibility: "hidden" });
  root.append(mark);
  let here = [columns >> 1, rows >> 1];
  function visit(x, y) {
    here = [Math.min(columns - 1, Math.max(0, x)), Math.min(rows - 1, Math.max(0, y))];
    mark.setAttribute("x", left + here[0] * size);
    mark.setAttribute("y", top + here[1] * size);
    mark.setAttribute("visibility", "visible");
    say(...here);
  }
  root.addEventListener("pointermove", (event) => {
    const area = root.getBoundingClientRect(), ratio = width / area.width;
    visit(Math.floor(((event.clientX - area.left) * ratio - left) / size), Math.floor(((event.clientY - area.top) * ratio - top) / size));
  });
  root.addEventListener("keydown", (event) => {
    const move = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (move) { event.preventDefault(); visit(here[0] + move[0], here[1] + move[1]); }
  });
  return root;
}

/* From `left` over nothing to `right`. */
function shade(lean) {
  return `color-mix(in oklab, var(--${lean > 0 ? "right" : "left"}) ${Math.round(100 * Math.min(1, Math.abs(lean)))}%, var(--middle))`;
}

function rectangle(x, y, size, lean) {
  const found = s("rect", { x, y, width: size, height: size, stroke: size > 12 ? "var(--line)" : "none" });
  found.style.fill = shade(lean);
  return found;
}

function legend() {
  return h("div", { class: "legend" }, [[-1, "left"], [-0.5, ""], [0, "even"], [0.5, ""], [1, "right"]].map(([lean, text]) =>
    h("span", {}, s("svg", { width: 18, height: 12, "aria-hidden": "true" }, rectangle(0, 0, 18, lean)), text)));
}

async function maps(packed, runs) {
  const all = [];
  for (const [place, each] of packed.entries()) {
    const values = await unpacked(each.probability), size = values.length / each.settings.length;
    const title = packed.length > 1 ? `${runs[place].name}: ` : "";
    const mean = new Float64Array(size);
    values.forEach((value, k) => { mean[k % size] += value / each.settings.length; });
    all.push({ ...each, text: `${title}mean over ${each.settings.length} runs`, values: mean });
    each.settings.forEach(([rate, exploration, seed], k) =>
      all.push({ ...each, text: `${title}seed ${seed}, rate ${rate}, exploration ${exploration}`, values: values.subarray(k * size, (k + 1) * size) }));
  }
  const catching = packed[0].sizes.length === 3, holder = h("div", { class: "grids" }), readout = h("output", { class: "readout", "aria-live": "polite", id: "cell" });
  const which = choice("Policy", all.map((each, k) => [k, each.text]), (k) => draw(all[k]));

  function draw(shown) {
    holder.replaceChildren(...(catching ? boards(shown) : [phase(shown)]));
  }

  function boards({ sizes: [rows, columns], values }) {
    const at = (row, ball, paddle) => values.subarray(3 * ((row * columns + ball) * columns + paddle), 3 * ((row * columns + ball) * columns + paddle) + 3);
    return Array.from({ length: rows }, (_, row) => h("figure", { "data-row": row }, h("h3", {}, `Ball in row ${row + 1} of ${rows + 1}`), gridMap(columns, columns, 34,
      (ball, paddle, x, y, size) => {
        const [left, stay, right] = at(row, ball, paddle), best = Math.max(left, stay, right);
        const sign = best === left ? "←" : best === right ? "→" : "•", reachable = Math.abs(paddle - (columns >> 1)) <= row;
        return s("g", { opacity: reachable ? 1 : 0.35 }, rectangle(x, y, size, right - left),
          s("text", { x: x + size / 2, y: y + size / 2 + 5, "text-anchor": "middle" }, sign));
      },
      (ball, paddle) => readout.replaceChildren(`Ball in row ${row + 1}, column ${ball + 1}, paddle in column ${paddle + 1}: left `,
        ...["", ", stay ", ", right "].flatMap((text, k) => [text, number(at(row, ball, paddle)[k], percent(at(row, ball, paddle)[k]))])),
      { title: `Ball in row ${row + 1}`, x: "ball's column", y: "paddle's column", ticks: (left, top, size) => Array.from({ length: columns }, (_, k) => [
        s("text", { x: left + (k + 0.5) * size, y: top + columns * size + 14, "text-anchor": "middle" }, String(k + 1)),
        s("text", { x: left - 5, y: top + (k + 0.5) * size + 4, "text-anchor": "end" }, String(k + 1))]).flat().reduce((group, text) => (group.append(text), group), s("g")) })));
  }

  function phase({ sizes: [many], limits, values }) {
    const right = (x, y) => values[2 * (x * many + (many - 1 - y)) + 1], size = 9;
    const along = (limit, k) => limit * (2 * k / (many - 1) - 1), degrees = limits[0] * 180 / Math.PI;
    return h("figure", {}, h("h3", {}, "Probability of a push to the right"), gridMap(many, many, size,
      (x, y, px, py) => rectangle(px, py, size, 2 * right(x, y) - 1),
      (x, y) => readout.replaceChildren(`Angle ${along(degrees, x).toFixed(1)}°, angular velocity ${along(limits[1], many - 1 - y).toFixed(2)} rad/s: right `,
        number(right(x, y), percent(right(x, y)))),
      { title: "Phase picture", x: "angle in degrees", y: "angular velocity in rad/s", ticks: (left, top) => s("g", {}, [-1, 0, 1].map((end) => [
        s("text", { x: left + (end + 1) / 2 * many * size, y: top + many * size + 14, "text-anchor": ["start", "middle", "end"][end + 1] }, (end * degrees).toFixed(0)),
        s("text", { x: left - 5, y: top + (1 - end) / 2 * many * size + 4 + 5 * end, "text-anchor": "end" }, String(end * limits[1]))])) }),
      legend());
  }
  draw(all[0]);
  return h("div", {}, h("p", {}, catching
    ? "One map for each row of the ball, one cell for each column of ball and paddle. The arrow is the most likely action, • is stay; the colour is the probability of right minus that of left. Faint cells cannot be reached."
    : "The policy with the cart at rest in the middle: one cell for each angle of the pole and each angular velocity. The colour is the probability of a push to the right."),
  h("p", { class: "note" }, "Point at a cell, or move with the arrow keys, to read its probabilities."), h("div", { class: "controls" }, which.element), readout, catching ? legend() : null, holder);
}
