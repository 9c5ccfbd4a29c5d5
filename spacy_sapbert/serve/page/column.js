// Column: a table with a column of terms, mapped, corrected and downloaded. It stays in
// this browser until it is cleared.

import { attempt, get, post, postFor, reviewer, send } from "./api.js";
import { countOf, download, dropZone, fill, growingList, make, say, strength } from "./dom.js";
import { searchField } from "./search.js";
import { NIL } from "./state.js";
import { nameTypes } from "./words.js";

const AT_ONCE = 100;  // terms of a request
const CANDIDATES = 5;
const DATABASE = "column", TABLE = "tables", KEY = "last", FOUND = "found";
const STATES = { exact: "exact", linked: "linked", review: "to review", none: "nothing found" };

/**
 * @typedef {object} Column
 * @property {string[]} header
 * @property {string[][]} rows
 * @property {number} place of the column of the terms
 * @property {string[]} terms each once
 * @property {any[]} found for each term
 * @property {string[]} chosen for each term: an id, "NIL" or nothing
 * @property {{[cui: string]: any}} concepts that were found by a search
 * @property {number} least
 * @property {string} draft
 */

/** @type {Column} */
const EMPTY = { header: [], rows: [], place: 0, terms: [], found: [], chosen: [], concepts: {}, least: 0.95, draft: "" };
let state = EMPTY;
/** @type {string[][]} what was chosen before */
let undone = [];
let filter = { state: "", words: "", sort: "", down: false };
/** @type {any} */
let view = null;
let read = false;

/** @param {IDBTransactionMode} mode @param {(store: IDBObjectStore) => IDBRequest} work */
function keep(mode, work) {
  return new Promise((done) => {
    const opening = indexedDB.open(DATABASE, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(TABLE);
    opening.onerror = () => done(undefined);
    opening.onsuccess = () => {
      const request = work(opening.result.transaction(TABLE, mode).objectStore(TABLE));
      request.onsuccess = () => done(request.result);
      request.onerror = () => done(undefined);
    };
  });
}

/** @param {Partial<Column>} values */
function change(values) {
  state = { ...state, ...values };
  const { found, ...rest } = state;  // what was found is large, and does not change
  if (values.found) keep("readwrite", (store) => store.put(found, FOUND));
  keep("readwrite", (store) => store.put(rest, KEY));
}

/** @param {HTMLElement} main @param {any} info */
export async function render(main, info) {
  const offered = await attempt("Reading …", () => get("/column/formats"));
  if (!offered) return;
  if (!read) {
    const kept = await keep("readonly", (store) => store.get(KEY));
    const found = await keep("readonly", (store) => store.get(FOUND));
    if (kept) state = { ...kept, ...(found?.length === kept.terms.length ? { found } : { terms: [], found: [] }) };
    read = true;
  }
  const text = make("textarea", { id: "terms", dir: "auto", spellcheck: "false", rows: 4 });
  text.value = state.draft;
  text.addEventListener("input", () => change({ draft: text.value }));
  const file = make("input", { type: "file", id: "table", accept: offered.endings.join(), hidden: true });
  file.addEventListener("change", () => file.files.length && readFile(file.files[0]));
  const paste = () => {
    const lines = text.value.split(/\r?\n/).filter((/** @type {string} */ line) => line.trim());
    if (!lines.length) { say("Paste some terms first.", true); return; }
    if (lines.length > offered.rows) { say(`At most ${offered.rows.toLocaleString("en")} terms; the command “map” takes more.`, true); return; }
    map({ header: ["term"], rows: lines.map((/** @type {string} */ line) => [line]), place: 0 });
  };
  view = { info, offered, table: make("div", {}), tools: make("div", { class: "row" }), facets: make("div", { class: "facets" }) };
  fill(main,
    make("h2", {}, "Map a column of terms"),
    dropZone(make("div", { class: "intro" }, make("label", { for: "terms" }, "Terms, one a line"), text), ([one]) => readFile(one)),
    make("div", { class: "row" },
      make("button", { class: "main", id: "map", onclick: paste }, "Map"),
      make("button", { onclick: () => file.click() }, "Open a table …"), file,
      make("span", { class: "dim" }, `CSV, Excel or .ods with a header, at most ${offered.rows.toLocaleString("en")} rows`)),
    view.tools, view.facets, view.table);
  if (state.found.length) draw();
}

/** @param {File} file */
async function readFile(file) {
  const path = `/column/read?name=${encodeURIComponent(file.name)}`;
  const found = await attempt("Reading …", async () => {
    const headers = { "content-type": "application/octet-stream" };
    return (await send(path, { method: "POST", headers, body: file })).json();
  });
  if (!found) return;
  if (!found.header.length) { say("The file is empty.", true); return; }
  const choice = make("select", { id: "which" },
    ...found.header.map((/** @type {string} */ column, /** @type {number} */ place) => make("option", { value: place }, column || `column ${place + 1}`)));
  const first = make("input", { type: "checkbox", id: "headless" });
  fill(view.tools, make("label", { for: "which" }, "Column of the terms"), choice,
    first, make("label", { for: "headless" }, "the first row is no header"),
    make("button", { class: "main", onclick: () => {
      const rows = first.checked ? [found.header, ...found.rows] : found.rows;
      const header = first.checked ? found.header.map((/** @type {string} */ _, /** @type {number} */ place) => `column ${place + 1}`) : found.header;
      map({ header, rows, place: Number(choice.value) });
    } }, "Map it"));
  fill(view.table);
  fill(view.facets);
  say(`${countOf(found.rows.length, "row")}.`);
}

/** @param {{header: string[], rows: string[][], place: number}} table */
async function map(table) {
  const terms = [...new Set(table.rows.map((row) => row[table.place]))];
  /** @type {any[]} */
  const found = [];
  for (let place = 0; place < terms.length; place += AT_ONCE) {
    say(`Mapping ${place} of ${terms.length} …`);
    const part = terms.slice(place, place + AT_ONCE);
    const answer = await attempt("", () => post("/column/map", { terms: part, k: CANDIDATES }));
    if (!answer) return;
    found.push(...answer.found);
  }
  undone = [];
  filter = { state: "", words: "", sort: "", down: false };
  change({ ...table, terms, found, chosen: terms.map(() => ""), concepts: {} });
  const repeated = table.rows.length - terms.length;
  say(`${countOf(terms.length, "term")}${repeated ? `, ${repeated} repeated` : ""}.`);
  draw();
}

const certainty = (/** @type {any} */ one) => one.candidates[0]?.probability ?? one.candidates[0]?.score ?? -1;

/** Whether several concepts fit equally. @param {any} one */
function isTied(one) {
  const [first, second] = one.candidates;
  return Boolean(first?.tie) || (second !== undefined && second.score === first.score);
}

/** @param {string[]} chosen */
function choose(chosen) {
  undone.push(state.chosen);
  change({ chosen });
}

function counts() {
  const found = new Map();
  for (const row of state.rows) found.set(row[state.place], (found.get(row[state.place]) ?? 0) + 1);
  return found;
}

/** What a term is shown as. @param {number} number */
function stateOf(number) {
  return state.chosen[number] ? "decided" : state.found[number].status;
}

function numbers() {
  const words = filter.words.toLowerCase();
  const values = {
    term: (/** @type {number} */ number) => state.terms[number].toLowerCase(),
    score: (/** @type {number} */ number) => certainty(state.found[number]),
    state: stateOf,
  };
  const value = values[/** @type {keyof typeof values} */ (filter.sort)];
  const chosen = state.terms.map((_, number) => number).filter((number) =>
    (!filter.state || stateOf(number) === filter.state) && state.terms[number].toLowerCase().includes(words));
  if (!value) return chosen;
  const sign = filter.down ? -1 : 1;
  return chosen.sort((a, b) => (value(a) < value(b) ? -sign : value(a) > value(b) ? sign : a - b));
}

function draw() {
  const least = make("input", { id: "least", type: "number", min: 0, max: 1, step: 0.01, value: String(state.least), size: 5 });
  least.addEventListener("change", () => change({ least: Number(least.value) }));
  const accept = () => {
    let count = 0;
    const chosen = state.chosen.map((one, number) => {
      const found = state.found[number];
      if (one || !found.cui || isTied(found) || certainty(found) < state.least) return one;
      count += 1;
      return found.cui;
    });
    choose(chosen);
    drawRows();
    say(`${count} accepted.`);
  };
  const undo = () => {
    const before = undone.pop();
    if (!before) { say("Nothing to undo."); return; }
    change({ chosen: before });
    drawRows();
    say("Undone.");
  };
  const clear = async () => {
    state = EMPTY;
    undone = [];
    keep("readwrite", (store) => store.clear());
    await render(view.table.closest("main"), view.info);
    say("Cleared.");
  };
  fill(view.tools,
    make("label", { for: "least" }, "Accept links from"), least,
    make("button", { id: "accept", onclick: accept }, "Accept"),
    make("button", { id: "undo", onclick: undo }, "Undo"),
    ...view.offered.formats.map((/** @type {string} */ format) => make("button", { onclick: () => save(format) }, `Download ${format}`)),
    make("button", { class: "quiet", onclick: clear }, "Clear"));
  const words = make("input", { id: "filter", type: "search", autocomplete: "off", value: filter.words });
  words.addEventListener("input", () => { filter = { ...filter, words: words.value }; drawRows(); });
  view.kinds = make("span", { class: "facets" });
  const rows = make("tbody");
  view.list = growingList(rows, drawRow);
  fill(view.facets, make("label", { for: "filter" }, "Search"), words, view.kinds);
  const head = (/** @type {string} */ key, /** @type {string} */ text) => make("th", { scope: "col" }, key ? make("button", {
    type: "button",
    onclick: (/** @type {any} */ event) => {
      filter = { ...filter, sort: key, down: filter.sort === key && !filter.down };
      for (const other of event.currentTarget.closest("tr").children) other.removeAttribute("aria-sort");
      event.currentTarget.parentElement.setAttribute("aria-sort", filter.down ? "descending" : "ascending");
      drawRows();
    },
  }, text) : text);
  fill(view.table, make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Terms" },
    make("table", { class: "terms" },
      make("thead", {}, make("tr", {}, head("term", "Term"), head("", "Concept"), head("score", "Certainty"), head("state", "State"))),
      rows)), view.list.more);
  drawRows();
}

function drawRows() {
  view.times = counts();
  const kinds = ["decided", ...Object.keys(STATES)].map((kind) => [kind, state.terms.filter((_, number) => stateOf(number) === kind).length]);
  fill(view.kinds, ...kinds.filter(([, count]) => count).map(([kind, count]) => make("button", {
    type: "button", class: "chip", "aria-pressed": String(filter.state === kind),
    onclick: () => { filter = { ...filter, state: filter.state === kind ? "" : String(kind) }; drawRows(); },
  }, `${STATES[/** @type {keyof typeof STATES} */ (kind)] ?? kind} ${count}`)));
  view.list.draw(numbers());
}

/** @param {number} number */
function drawRow(number) {
  const one = state.found[number];
  const times = view.times.get(state.terms[number]) ?? 1;
  const row = make("tr", {});
  const redraw = (/** @type {string} */ cui) => {
    choose(state.chosen.map((known, place) => (place === number ? (known === cui ? "" : cui) : known)));
    const fresh = drawRow(number);
    row.replaceWith(fresh);
    fresh.querySelector("[aria-pressed=true]")?.focus();
  };
  const chip = (/** @type {string} */ cui, /** @type {string} */ name, /** @type {any} */ candidate) => make("button", {
    type: "button", class: `chip${cui === one.cui ? " proposed" : ""}`, "data-cui": cui, dir: "auto", "aria-pressed": String(state.chosen[number] === cui),
    title: candidate ? `${cui}, ${nameTypes(candidate.types)}` : null, onclick: () => redraw(cui),
  }, name);
  const cell = make("td", {});
  const other = state.chosen[number] !== NIL && !one.candidates.some((/** @type {any} */ each) => each.cui === state.chosen[number])
    ? state.concepts[state.chosen[number]] : null;
  const open = () => {
    const results = make("div", {});
    const search = searchField({
      id: `search-${number}`, label: "Other",
      onfound: (concepts) => fill(results, ...(concepts ?? []).map((each) => make("button", {
        type: "button", class: "chip", "data-cui": each.cui, onclick: () => pick(each),
      }, each.name))),
      onchoose: pick,
    });
    cell.append(search.element, results);
    search.field.focus();
  };
  const pick = (/** @type {any} */ concept) => {
    change({ concepts: { ...state.concepts, [concept.cui]: concept } });
    redraw(concept.cui);
  };
  fill(cell, ...one.candidates.map((/** @type {any} */ each) => chip(each.cui, each.name, each)),
    other && chip(other.cui, other.name, other), chip(NIL, "no concept", null),
    make("button", { type: "button", class: "quiet", "aria-label": `Search for ${state.terms[number]}`, onclick: open }, "search …"));
  const status = stateOf(number);
  fill(row,
    make("td", { dir: "auto" }, state.terms[number], times > 1 && make("span", { class: "dim" }, ` × ${times}`)),
    cell,
    make("td", {}, isTied(one) ? "several fit" : one.candidates.length ? strength(one.candidates[0]) : "–"),
    make("td", {}, status === "decided" ? "decided ✓" : STATES[/** @type {keyof typeof STATES} */ (status)] ?? status));
  return row;
}

/** @param {string} format */
async function save(format) {
  const places = new Map(state.terms.map((term, number) => [term, number]));
  const terms = state.rows.map((row) => row[state.place]);
  const of = (/** @type {any[]} */ list) => terms.map((term) => list[places.get(term) ?? 0]);
  const body = { header: state.header, rows: state.rows, terms, k: CANDIDATES, chosen: of(state.chosen), reviewer: reviewer() };
  const blob = await attempt("Writing …", async () => (await postFor(`/column/write?format=${format}`, body)).blob());
  if (!blob) return;
  download(blob, `mapped.${format}`);
  say("Downloaded.");
}
