/* Data as the page holds it, numbers as people read them, and elements. */

const KINDS = { float64: Float64Array, float32: Float32Array, int32: Int32Array };

async function inflated(text) {
  const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

async function unpacked(array) {
  return new KINDS[array.dtype](await inflated(array.zlib));
}

async function unpackedText(texts) {
  return JSON.parse(new TextDecoder().decode(await inflated(texts.zlib)));
}

/* A number in few digits; its element keeps all of them. Counts are whole; a value that is has its digits too. */
function short(value, count = true) {
  if (!Number.isFinite(value)) return "–";
  if (count && Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size < 5e-13) return "0";
  if (size < 1e-4) return value.toExponential(1);
  return size < 100 ? value.toFixed(4) : value.toLocaleString("en", { maximumFractionDigits: 1 });
}

function percent(value) {
  return value === 0 ? "0%" : value < 1e-4 ? `${(100 * value).toExponential(0)}%` : `${(100 * value).toFixed(value < 0.01 ? 2 : 1)}%`;
}

/* An element; names that begin with "on" are listeners, false and null leave out. */
function h(tag, given = {}, ...children) {
  return filled(document.createElement(tag), given, children);
}

function s(tag, given = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), given, children);
}

function filled(element, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== false && child !== undefined));
  return element;
}

function number(value, text = short(value)) {
  return h("data", { value: String(value), title: String(value) }, text);
}

function fixed(value) {
  return number(value, short(value, false));
}

function choice(label, options, changed) {
  const select = h("select", { onchange: () => changed(select.value) },
    options.map(([value, text]) => h("option", { value }, text)));
  return { select, element: h("label", {}, label, select) };
}

function bar(probability) {
  const inner = h("i");
  inner.style.width = `${100 * probability}%`;
  return h("span", { class: "chance" }, h("span", { class: "bar", "aria-hidden": "true" }, inner),
    number(probability, percent(probability)));
}
