/* An information state as its player would see it: cards, dice, bids, boards; else its words as a list. */

const RANKS = ["J", "Q", "K", "A"], FACES = ["", "⚀", "⚁", "⚂", "⚃", "⚄", "⚅"];

function card(game, code) {
  const name = game.split("(")[0];
  if (name === "kuhn_poker") return { text: RANKS[code] || String(code), red: false };
  if (/suit_isomorphism=True/i.test(game)) return { text: RANKS[code] || String(code), red: false };
  return { text: (RANKS[code >> 1] || String(code >> 1)) + "♠♥"[code & 1], red: Boolean(code & 1) };
}

/* The parts of a state: [label, kind, value]; of these come its picture and the words that a search finds. */
function parts(game, state) {
  const text = game.strings[state], picture = game.pictures[state], name = game.name.split("(")[0];
  const kuhn = name === "kuhn_poker" && /^(\d+)([pb]*)$/.exec(text);
  if (kuhn) return [["Card", "cards", [card(game.name, +kuhn[1])]],
    ["Moves", "text", [...kuhn[2]].map((move) => (move === "b" ? "bet" : "pass")).join(", ") || "none yet"]];
  if (name === "leduc_poker" && text.startsWith("[")) {
    const said = Object.fromEntries([...text.matchAll(/\[([^:\]]+):\s*([^\]]*)\]/g)].map((found) => [found[1], found[2]]));
    const moves = (line) => line.trim().split(/\s+/).filter(Boolean).map((move) => ["fold", "call", "raise"][move] || move).join(", ");
    const cards = [["Card", "cards", [card(game.name, +said.Private)]]];
    if (said.Public !== undefined && +said.Public >= 0) cards.push(["On the table", "cards", [card(game.name, +said.Public)]]);
    return [...cards, ["Pot", "text", said.Pot], ["Round 1", "text", moves(said.Round1 || "") || "no move yet"],
      ...(moves(said.Round2 || "") ? [["Round 2", "text", moves(said.Round2)]] : [])];
  }
  if (name.includes("liars_dice") && /^[\d\s-]+(Liar)?$/.test(text)) {
    const words = text.trim().split(/\s+/), bids = words.filter((word) => word.includes("-"));
    return [["Dice", "dice", words.filter((word) => /^\d$/.test(word)).map(Number)],
      ["Bids", "text", bids.map(bidName).join(", ") || "none yet"]];
  }
  const shown = board(text) ? text : picture && board(picture) ? picture : text;
  const found = board(shown);
  if (found) {
    const rest = shown.split("\n").filter((_, line) => line < found.from || line >= found.to).join(" ").trim();
    const drawing = ["Board", name.includes("hex") ? "hex" : "board", found.rows];
    if (/^(\d+\s*)?(\d+,-?\d+\s*)*$/.test(rest) && rest) return [drawing, ["Own moves", "text", ownMoves(game, state).join(", ") || "none yet"]]; // phantom games
    return [drawing, ...(rest ? [["Also", "text", rest]] : []), ...(shown === text ? [] : words(text))];
  }
  const said = words(text);
  return [...said, ...(picture && said.length === 1 ? [["Seen", "pre", picture.trimEnd()]] : [])];
}

function ownMoves(game, state) {
  const row = game.histories[state][0];
  return path(game, row).filter((step) => step.player === game.player[row]).map((step) => step.name);
}

/* The first block of at least two lines of the same length without a space: a board. */
function board(text) {
  const all = text.split("\n");
  for (let from = 0; from < all.length; from++) {
    let to = from;
    while (to < all.length && /^[^\s:[\],]{2,20}$/.test(all[to]) && all[to].length === all[from].length) to++;
    if (to - from > 1) return { from, to, rows: all.slice(from, to) };
  }
  return null;
}

function words(text) {
  const pairs = [...text.matchAll(/\[([^:\]]+):\s*([^\]]*)\]/g)].map((found) => [found[1], "text", found[2]]);
  if (pairs.length) return pairs;
  const said = text.split("\n").filter((line) => line.trim());
  if (said.length && said.every((line) => /^[^:]+:/.test(line)))
    return said.map((line) => [line.slice(0, line.indexOf(":")), "text", line.slice(line.indexOf(":") + 1).trim() || "none"]);
  return [["State", "text", text.trim() || "the first move"]];
}

function plain(part) {
  const [label, kind, value] = part;
  if (kind === "cards") return `${label} ${value.map((each) => each.text).join(" ")}`;
  return `${label} ${Array.isArray(value) ? value.join(" ") : value}`;
}

function drawn(list) {
  const show = { text: (value) => value, pre: (value) => h("span", { class: "raw" }, value),
    cards: (value) => value.map((each) => h("span", { class: each.red ? "card red" : "card" }, each.text)),
    dice: (value) => value.map((face) => h("span", { class: "die", title: String(face) }, FACES[face] || String(face))),
    board: (rows) => grid(rows, 0), hex: (rows) => grid(rows, 0.85) };
  return h("div", { class: "drawn" }, h("dl", {}, list.map(([label, kind, value]) => [h("dt", {}, label), h("dd", {}, show[kind](value))])));
}

/* Rows of signs; those of a rhombus, as in hex, each a little further to the right. */
function grid(rows, shift) {
  const table = h("table", { class: "board" }, rows.map((row) => h("tr", {}, [...row].map((sign) => h("td", {}, sign === "." ? "" : sign)))));
  [...table.rows].forEach((row, k) => { row.style.left = `${k * shift}rem`; });
  table.style.marginRight = `${(rows.length - 1) * shift}rem`;
  return table;
}

function bidName(bid) {
  return bid.replace(/^(\d+)-(\d+)$/, (_, many, face) => `${many} × ${FACES[face] || face}`);
}

/* The name of a step: outcomes of chance that are cards, and bids of dice, are drawn as such. */
function stepName(game, player, name) {
  if (game.includes("liars_dice")) return bidName(name).replace(/^Roll (\d)$/, (_, face) => FACES[face] || face);
  const dealt = /^(?:Chance outcome|Deal):\s*(\d+)$/.exec(name);
  return player < 0 && dealt && /^(kuhn|leduc)_poker/.test(game) ? card(game, +dealt[1]).text : name;
}
