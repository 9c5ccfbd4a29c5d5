// Column: a table with a column of terms, mapped, corrected and downloaded. It stays in
// this browser until it is cleared. What was shown is what is written.

import { attempt, get, post, postFor, reviewer, send } from "./api.js";
import { nameOf } from "./deciding.js";
import { countOf, download, dropZone, fill, growingTable, make, say, select, strength } from "./dom.js";
import { commandsOf } from "./keys.js";
import { searchButton } from "./search.js";
import { NIL } from "./state.js";
import { nameTypes } from "./words.js";

const AT_ONCE = 100;  // terms of a request
const CANDIDATES = 5;
const DATABASE = "column", TABLE = "tables", KEY = "last", FOUND = "found";
const STATES = { decided: "decided ✓", exact: "exact", linked: "linked", review: "to review", none: "nothing found" };
const RELATIONS = ["exact", "broad", "narrow", "related"];

/**
 * @typedef {object} Column
 * @property {string[]} header
 * @property {any[][]} rows cells as the service has read them
 * @property {number} place of the column of the terms
 * @property {string} subject name of the column of ids, or nothing
 * @property {string} kb digest of the knowledge base that was asked
 * @property {string[]} terms each once
 * @property {any[]} found for each term
 * @property {string[]} chosen for each term: an id, "NIL" or nothing
 * @property {string[]} relations of each term to what is chosen
 * @property {{[cui: string]: any}} concepts that were found by a search
 * @property {string} draft
 */

/** @type {Column} */
const EMPTY = { header: [], rows: [], place: 0, subject: "", kb: "", terms: [], found: [], chosen: [], relations: [], concepts: {}, draft: "" };
let state = EMPTY;
/** @type {Pick<Column, "chosen"|"relations">[]} */
let undone = [];
let filter = { state: "", words: "", sort: "", down: false };
let current = 0;  // term that keys are for
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
  const offered = await attempt("Reading …", () => get("column/formats"));
  if (!offered) return;
  if (!read) {
    const kept = await keep("readonly", (store) => store.get(KEY));
    const found = await keep("readonly", (store) => store.get(FOUND));
    if (kept) state = { ...EMPTY, ...kept, ...(found?.length === kept.terms.length ? { found } : { terms: [], found: [] }) };
    read = true;
  }
  const text = make("textarea", { id: "terms", dir: "auto", spellcheck: "false", rows: 4, value: state.draft });
  text.addEventListener("input", () => change({ draft: text.value }));
  const file = make("input", { type: "file", id: "table", accept: offered.endings.join(), hidden: true });
  const take = (/** @type {File} */ one) => readFile(one, offered);
  file.addEventListener("change", async () => { if (file.files.length) await take(file.files[0]); file.value = ""; });
  const paste = () => {
    const lines = text.value.split(/\r?\n/).filter((/** @type {string} */ line) => line.trim());
    if (!lines.length) { say("Paste some terms first.", true); return; }
    if (lines.length > offered.rows) { say(`At most ${offered.rows.toLocaleString("en")} terms at a time.`, true); return; }
    map({ header: ["term"], rows: lines.map((/** @type {string} */ line) => [line]), place: 0, subject: "" });
  };
  view = {
    main, info, offered, table: make("div", { class: "keys" }), tools: make("div", { class: "row" }), ask: make("div", { class: "row" }),
    intro: make("details", { class: "intro", open: !state.terms.length }, make("summary", {}, "Terms, one a line, or a table"),
      dropZone(make("div", {}, make("label", { for: "terms" }, "Terms"), text), ([one]) => take(one)),
      make("div", { class: "row" },
        make("button", { class: "main", id: "map", onclick: paste }, "Map"),
        make("button", { onclick: () => file.click() }, "Open a table …"), file,
        make("span", { class: "dim" }, `${offered.endings.join(" ")}; it stays in this browser until you clear it.`))),
  };
  fill(main, make("h2", {}, "Map a column of terms"), view.intro, view.ask, view.tools, view.table);
  if (state.terms.length) draw();
}

/** @param {any} cell */
const textOf = (cell) => (cell === null ? "" : typeof cell === "object" ? cell.date : String(cell));

/** @param {File} one @param {any} offered */
async function readFile(one, offered) {
  if (!offered.endings.some((/** @type {string} */ ending) => one.name.toLowerCase().endsWith(ending))) {
    say(`“${one.name}” is not a table that can be read: save it as ${offered.endings.join(", ")}.`, true);
    return;
  }
  const found = await attempt("Reading …", async () => {
    const headers = { "content-type": "application/octet-stream" };
    return (await send(`column/read?name=${encodeURIComponent(one.name)}`, { method: "POST", headers, body: one })).json();
  });
  if (!found) return;
  if (!found.rows.length) { say(`“${one.name}” has no rows.`, true); return; }
  const names = (/** @type {string[]} */ header) => header.map((column, place) => column || `column ${place + 1}`);
  const first = make("input", { type: "checkbox", id: "headless" });
  let [place, subject] = ["0", ""];
  const columns = names(found.header).map((name, at) => [String(at), name]);
  fill(view.ask, ...select("which", "Column of the terms", columns, place, (value) => { place = value; }),
    ...select("subject", "Column of ids", [["", "none"], ...columns], subject, (value) => { subject = value; }),
    first, make("label", { for: "headless" }, "the first row is no header"),
    make("button", { class: "main", onclick: () => {
      const rows = first.checked ? [found.header, ...found.rows] : found.rows;
      const header = first.checked ? names(found.header.map(() => "")) : found.header;
      map({ header, rows, place: Number(place), subject: subject && header[Number(subject)] });
    } }, "Map it"));
  fill(view.table);
  fill(view.tools);
  say(`${countOf(found.rows.length, "row")}.`);
}

/** @param {Pick<Column, "header"|"rows"|"place"|"subject">} table */
async function map(table) {
  const terms = [...new Set(table.rows.map((row) => textOf(row[table.place])))];
  /** @type {any[]} */
  const found = [];
  let kb = "";
  for (let place = 0; place < terms.length; place += AT_ONCE) {
    say(`Mapping ${place} of ${terms.length} …`);
    const part = terms.slice(place, place + AT_ONCE);
    const answer = await attempt("", () => post("column/map", { terms: part, k: CANDIDATES }));
    if (!answer) return;
    found.push(...answer.found);
    kb = answer.kb;
  }
  undone = [];
  filter = { state: "", words: "", sort: "", down: false };
  current = 0;
  change({ ...table, kb, terms, found, chosen: terms.map(() => ""), relations: terms.map(() => ""), concepts: {} });
  const repeated = table.rows.length - terms.length;
  say(`${countOf(terms.length, "term")}${repeated ? `, ${repeated} repeated` : ""}.`);
  fill(view.ask);
  view.intro.open = false;
  draw();
}

/** @param {Partial<Column>} values */
function decide(values) {
  const { chosen, relations } = state;
  undone.push({ chosen, relations });
  change(values);
}

/** What a term is shown as. @param {number} number */
const stateOf = (number) => (state.chosen[number] ? "decided" : state.found[number].status);
/** @param {number} number */
const scoreOf = (number) => state.found[number].candidates[0]?.probability ?? state.found[number].candidates[0]?.score ?? -1;
/** @template T @param {T[]} list @param {number} place @param {T} value */
const replaced = (list, place, value) => list.map((one, at) => (at === place ? value : one));

/** The terms that are shown, in their order. */
function numbers() {
  const words = filter.words.toLowerCase();
  const values = { Term: (/** @type {number} */ number) => state.terms[number].toLowerCase(), Certainty: scoreOf, State: stateOf };
  const value = values[/** @type {keyof typeof values} */ (filter.sort)];
  const chosen = state.terms.map((_, number) => number).filter((number) =>
    (!filter.state || stateOf(number) === filter.state) && state.terms[number].toLowerCase().includes(words));
  const sign = filter.down ? -1 : 1;
  return value ? chosen.sort((a, b) => (value(a) < value(b) ? -sign : value(a) > value(b) ? sign : a - b)) : chosen;
}

/** A term as the keys see it. @param {number} number */
function itemOf(number) {
  const one = state.found[number];
  return one && { number, mention: { text: state.terms[number], chosen: state.chosen[number] || null, ...one } };
}

/** @type {import("./keys.js").Bench} */
const terms = {
  item: () => itemOf(current),
  busy: () => "",
  say,
  arrows: ["ArrowDown", "ArrowUp"],
  move(step) {
    const shown = numbers();
    show(shown[Math.max(0, Math.min(shown.length - 1, shown.indexOf(current) + step))] ?? current);
  },
  choose({ number, mention }, chosen, candidate) {
    const isTaken = state.chosen[number] === chosen && candidate;  // a second click takes it back
    const concepts = candidate?.types ? { ...state.concepts, [candidate.cui]: candidate } : state.concepts;
    decide({ concepts, chosen: replaced(state.chosen, number, isTaken ? "" : chosen),
      relations: replaced(state.relations, number, chosen === NIL || isTaken ? "" : "exact") });
    say(`“${mention.text}” is ${nameOf(chosen, mention, candidate)}.`);
    const shown = numbers();
    const next = shown.slice(shown.indexOf(number) + 1).find((one) => !state.chosen[one]) ?? number;
    drawCounts();
    redraw(number);
    show(next);
  },
  more: {
    search: () => rowOf(current)?.querySelector(".quiet")?.click(),
    undo() {
      const before = undone.pop();
      if (!before) { say("Nothing to undo."); return; }
      const at = state.chosen.findIndex((one, number) => one !== before.chosen[number] || state.relations[number] !== before.relations[number]);
      change(before);
      current = Math.max(0, at);
      drawRows();
      show(current);
      say("Undone.");
    },
    relate: (/** @type {any} */ item) => item && relate(item.number),
  },
};

/** Another relation of a term to its concept. @param {number} number */
function relate(number) {
  if (!state.chosen[number] || state.chosen[number] === NIL) { say("Choose a concept first."); return; }
  const next = RELATIONS[(RELATIONS.indexOf(state.relations[number]) + 1) % RELATIONS.length];
  decide({ relations: replaced(state.relations, number, next) });
  redraw(number);
  show(number);
  say(`“${state.terms[number]}”: ${next}.`);
}

/** @param {number} number */
const rowOf = (number) => view?.list.body.querySelector(`[data-number="${number}"]`)?.closest("tr");

/** @param {number} number */
function redraw(number) {
  rowOf(number)?.replaceWith(view.list.row(number));
}

/** Makes a term the one that keys are for. @param {number} number */
function show(number) {
  const before = rowOf(current);
  before?.classList.remove("current");
  before?.removeAttribute("tabindex");
  current = number;
  const row = rowOf(number);
  row?.classList.add("current");
  row?.setAttribute("tabindex", "0");
  row?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: "nearest" });
}

function draw() {
  const accept = () => {
    const chosen = state.chosen.map((one, number) => one || (state.found[number].certainty === "sure" ? state.found[number].cui : ""));
    const count = chosen.filter((one, number) => one !== state.chosen[number]).length;
    decide({ chosen, relations: state.relations.map((one, number) => (chosen[number] && !state.chosen[number] ? "exact" : one)) });
    drawRows();
    say(`${count} accepted.`);
  };
  const clear = async () => {
    state = EMPTY;
    undone = [];
    keep("readwrite", (store) => store.clear());
    await render(view.main, view.info);
    say("Cleared.");
  };
  const words = make("input", { id: "filter", type: "search", autocomplete: "off", value: filter.words });
  words.addEventListener("input", () => { filter = { ...filter, words: words.value }; drawRows(); });
  view.kinds = make("span", { class: "facets" });
  fill(view.tools,
    make("button", { id: "accept", class: "main", onclick: accept }, "Accept what is sure"),
    make("button", { id: "undo", onclick: terms.more.undo }, "Undo ", make("kbd", {}, "u")),
    ...view.offered.formats.map((/** @type {string} */ format) => make("button", { onclick: () => save(format) }, `Download ${format}`)),
    make("button", { class: "quiet", onclick: clear }, "Clear"),
    make("label", { for: "filter" }, "Search"), words, view.kinds,
    make("details", { class: "menu" }, make("summary", {}, "Keys"), make("div", {}, make("p", {},
      ...commandsOf(terms).flatMap((one) => [make("kbd", {}, one.shown), ` ${one.text}  `])))));
  const head = (/** @type {string} */ text) => make("button", { type: "button", onclick: (/** @type {any} */ event) => {
    filter = { ...filter, sort: text, down: filter.sort === text && !filter.down };
    for (const other of event.target.closest("tr").children) other.removeAttribute("aria-sort");
    event.target.parentElement.setAttribute("aria-sort", filter.down ? "descending" : "ascending");
    drawRows();
  } }, text);
  view.list = growingTable([head("Term"), "Concept", head("Certainty"), head("State")], cellsOf, "Terms", { class: "terms" });
  fill(view.table, view.list.element);
  drawRows();
}

function drawRows() {
  view.times = Map.groupBy(state.rows, (row) => textOf(row[state.place]));
  drawCounts();
  const shown = numbers();
  view.list.draw(shown);
  if (!shown.includes(current)) current = shown[0] ?? 0;
  const row = rowOf(current);
  row?.classList.add("current");
  row?.setAttribute("tabindex", "0");
}

function drawCounts() {
  const kinds = Object.keys(STATES).map((kind) => [kind, state.terms.filter((_, number) => stateOf(number) === kind).length]);
  fill(view.kinds, ...kinds.filter(([, count]) => count).map(([kind, count]) => make("button", {
    type: "button", class: "chip", "aria-pressed": String(filter.state === kind),
    onclick: () => { filter = { ...filter, state: filter.state === kind ? "" : String(kind) }; drawRows(); },
  }, `${STATES[/** @type {keyof typeof STATES} */ (kind)]} ${count}`)));
}

/** @param {number} number */
function cellsOf(number) {
  const one = state.found[number];
  const [term, chosen] = [state.terms[number], state.chosen[number]];
  const times = view.times.get(term)?.length ?? 1;
  const chip = (/** @type {string} */ key, /** @type {any} */ concept) => make("button", {
    type: "button", class: `chip${concept.cui === one.cui ? " proposed" : ""}`, "data-cui": concept.cui, dir: "auto",
    "aria-pressed": String(chosen === concept.cui), "aria-label": [key && `${key}: `, concept.name, concept.types ? `, ${nameTypes(concept.types)}` : ""].join(""),
    title: concept.types ? `${concept.cui}, ${nameTypes(concept.types)}` : null, onclick: () => terms.choose(itemOf(number), concept.cui, concept),
  }, key && make("kbd", {}, key), concept.name);
  const other = one.candidates.some((/** @type {any} */ each) => each.cui === chosen) ? null : state.concepts[chosen];
  const status = stateOf(number);
  const related = chosen && chosen !== NIL && make("button", {
    type: "button", class: "quiet", "aria-label": `Relation of ${term}: ${state.relations[number]}`, onclick: () => relate(number),
  }, state.relations[number]);
  return [
    make("span", { dir: "auto", "data-number": number }, term, times > 1 && make("span", { class: "dim" }, ` × ${times}`)),
    make("div", {}, ...one.candidates.map((/** @type {any} */ each, /** @type {number} */ place) => chip(String(place + 1), each)),
      other && chip("", other), chip("0", { cui: NIL, name: "no concept" }),
      searchButton(term, `search-${number}`, (concept) => terms.choose(itemOf(number), concept.cui, concept)), related),
    one.certainty === "tied" ? "several fit" : one.candidates.length ? strength(one.candidates[0]) : "–",
    STATES[/** @type {keyof typeof STATES} */ (status)] ?? status,
  ];
}

/** @param {string} format */
async function save(format) {
  const { header, subject, kb } = state;
  const places = new Map(state.terms.map((term, number) => [term, number]));
  const rows = state.rows.map((row) => textOf(row[state.place]));
  const of = (/** @type {any[]} */ list) => rows.map((term) => list[places.get(term) ?? 0]);
  const found = Object.fromEntries(state.terms.map((term, number) => [term, state.found[number]]));
  const body = { header, rows: state.rows, terms: rows, found, kb, subject, chosen: of(state.chosen),
    predicates: of(state.relations), reviewer: reviewer() };
  const blob = await attempt("Writing …", async () => (await postFor(`column/write?format=${format}`, body)).blob());
  if (!blob) return;
  download(blob, `mapped.${format}`);
  say("Downloaded.");
}

export function leave() {
  view = null;
}

export function focus() {
  rowOf(current)?.focus({ preventScroll: true });
}

/** Where keys act. */
export const bench = () => (view && state.terms.length && view.list ? terms : null);
export { press } from "./keys.js";
