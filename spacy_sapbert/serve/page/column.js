// Column: a table with a column of terms, mapped, corrected and downloaded.

import { attempt, post, postFor, send } from "/page/api.js";
import { download, dropZone, fill, make, say, score } from "/page/dom.js";

const AT_ONCE = 100;  // terms of a request
const FORMATS = ["csv", "xlsx", "sssom.tsv"];
const state = { header: [], rows: [], place: 0, found: [], chosen: [], order: [] };
let view = null;

export function render(main) {
  const text = make("textarea", { id: "terms", dir: "auto", spellcheck: "false" });
  const file = make("input", { type: "file", id: "table", accept: ".csv,.tsv,.xlsx,.parquet" });
  file.addEventListener("change", () => file.files.length && read(file.files[0], file.files[0].name));
  const paste = () => {
    const lines = text.value.split(/\r?\n/).filter((line) => line.trim());
    if (!lines.length) return say("Paste some terms first.", true);
    Object.assign(state, { header: ["term"], rows: lines.map((line) => [line]), place: 0 });
    map();
  };
  view = { table: make("div", {}), tools: make("div", { class: "row" }) };
  fill(main,
    make("h2", {}, "Map a column of terms"),
    dropZone(make("div", {},
      make("label", { for: "terms" }, "Terms, one a line"), text), (one) => read(one, one.name)),
    make("div", { class: "row" },
      make("button", { class: "main", id: "map", onclick: paste }, "Map"),
      make("label", { for: "table" }, "or a CSV or Excel file with a header"), file),
    view.tools, view.table);
  if (state.found.length) draw();
}

async function read(file, name) {
  const path = `/column/read?name=${encodeURIComponent(name)}`;
  const found = await attempt("Reading …", async () => {
    const headers = { "content-type": "application/octet-stream" };
    return (await send(path, { method: "POST", headers, body: file })).json();
  });
  if (!found) return;
  Object.assign(state, { header: found.header, rows: found.rows, found: [], chosen: [] });
  const choice = make("select", { id: "which" },
    ...found.header.map((column, place) => make("option", { value: place }, column)));
  fill(view.tools, make("label", { for: "which" }, "Column of the terms"), choice,
    make("button", { onclick: () => { state.place = Number(choice.value); map(); } }, "Map it"));
  fill(view.table);
  say(`${found.rows.length} rows.`);
}

const terms = () => state.rows.map((row) => row[state.place]);

async function map() {
  state.found = [];
  for (let place = 0; place < state.rows.length; place += AT_ONCE) {
    const part = terms().slice(place, place + AT_ONCE);
    const doing = `Mapping ${place} of ${state.rows.length} …`;
    const answer = await attempt(doing, () => post("/column/map", { terms: part, k: 5 }));
    if (!answer) return;
    state.found.push(...answer.found);
  }
  state.chosen = state.found.map(() => "");
  state.order = state.rows.map((_, number) => number);
  say(`${state.rows.length} terms.`);
  draw();
}

const certainty = (one) => one.candidates[0]?.probability ?? one.candidates[0]?.score ?? -1;

function draw() {
  const least = make("input", {
    id: "least", type: "number", min: 0, max: 1, step: 0.01, value: "0.95", size: 5,
  });
  const accept = () => {
    let count = 0;
    state.found.forEach((one, number) => {
      if (!state.chosen[number] && one.cui && certainty(one) >= Number(least.value)) {
        state.chosen[number] = one.cui;
        count += 1;
      }
    });
    say(`${count} accepted.`);
    draw();
  };
  const sort = (sign) => {
    state.order.sort((a, b) => sign * (certainty(state.found[a]) - certainty(state.found[b])) || a - b);
    draw();
  };
  fill(view.tools,
    make("button", { onclick: () => sort(1) }, "Least certain first"),
    make("button", { onclick: () => sort(-1) }, "Most certain first"),
    make("label", { for: "least" }, "Accept links from"), least,
    make("button", { id: "accept", onclick: accept }, "Accept"),
    ...FORMATS.map((format) => make("button", { onclick: () => save(format) }, `Download ${format}`)));
  const head = ["Term", "Concept", "Score", "Probability", "Status"];
  fill(view.table, make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Terms" },
    make("table", {},
      make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...state.order.map(drawRow)))));
}

function drawRow(number) {
  const one = state.found[number];
  const first = one.candidates[0];
  const choice = make("select", { "aria-label": `Concept of ${terms()[number]}` },
    make("option", { value: "" }, one.cui ? `${first.name} (not reviewed)` : "not reviewed"),
    ...one.candidates.map((each) =>
      make("option", { value: each.cui }, `${each.name} ${each.score.toFixed(3)} (${each.cui})`)),
    make("option", { value: "NIL" }, "no concept (NIL)"));
  choice.value = state.chosen[number];
  choice.addEventListener("change", () => { state.chosen[number] = choice.value; });
  return make("tr", {},
    make("td", {}, terms()[number]),
    make("td", {}, choice),
    make("td", {}, score(first?.score, "score")),
    make("td", {}, score(first?.probability, "probability")),
    make("td", {}, one.status));
}

async function save(format) {
  const body = {
    header: state.header, rows: state.rows, terms: terms(),
    found: state.found, chosen: state.chosen,
  };
  const blob = await attempt("Writing …", async () =>
    (await postFor(`/column/write?format=${format}`, body)).blob());
  if (!blob) return;
  download(blob, `mapped.${format}`);
  say("Downloaded.");
}
