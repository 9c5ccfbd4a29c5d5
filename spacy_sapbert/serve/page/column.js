// Column: a table with a column of terms, mapped, corrected and downloaded. What was shown
// is what is written. A service with reviews keeps it, and each choice when it is made.

import { attempt, get, post, remove, reviewer, saveBlob, saveFile, send, withJson } from "./api.js";
import { PAGE, listKeys, makeList, menu, nameWithCode, workbench } from "./bench.js";
import { listBench } from "./deciding.js";
import { countOf, fileField, fill, growingTable, later, localTime, make, said, say, select, strength, sureButton } from "./dom.js";
import { dispatch, getState, keep, listen, readDecisions, readKept } from "./session.js";
import { NIL, changeOf, isOpen, newMention } from "./state.js";

const AT_ONCE = 100;  // terms of a request
const CANDIDATES = 5;
const LONGEST_SHORT = 5;  // characters of an abbreviation, whose letters say what it is
const SHOWN_ROWS = 3;  // of a term
const TERMS = /^(term|name|label|text|mention|diagnosis|description)s?$/i;  // headers of columns of terms
const LONGEST_NAME = 200;  // characters
const STEPS = "undo of", MOST_STEPS = 50;
const DRAFT = "terms";  // what is not mapped yet outlives a reload
const STATES = { decided: "decided ✓", accepted: "accepted ✓", exact: "exact", linked: "linked", review: "to review", none: "nothing found" };
const RELATIONS = ["exact", "broad", "narrow", "related"];
const ALL = { state: "", words: "", of: "", sort: "" };
/** How rows are sorted. @type {{[name: string]: (a: any, b: any) => number}} */
const SORTS = {
  term: (a, b) => a.mention.text.localeCompare(b.mention.text),
  certainty: (a, b) => chanceOf(b) - chanceOf(a),
};

/**
 * @typedef {object} Item a term, which may be in several rows
 * @property {number} number its place among the terms
 * @property {import("./state.js").Mention} mention
 * @property {any} found what the service said of it
 * @property {any[][]} rows of the table that have it
 * @property {string} relation of the term to what is chosen
 * @property {boolean} inBulk it was accepted with all that is sure: in a download it is no choice of a person
 * @property {any[]} verdicts on the ids that its rows have
 *
 * @typedef {{terms: number[], before: any[]}} Step what one undo takes back: items, and their choices before
 *
 * @typedef {object} Column
 * @property {string|null} id null = it is not kept
 * @property {string} name
 * @property {string} kb digest of the knowledge base that was asked
 * @property {{header: string[], rows: any[][], place: number, subject: string}} sheet `place` of the column of the
 *   terms, and the name of that of ids
 * @property {Item[]} items
 * @property {boolean} saved what was decided is kept, or was downloaded
 */

/** What is open. @type {Column|null} */
let column = null;
let bench = newBench();
let filter = ALL;
/** A table that was read, of which the columns are asked for. @type {{name: string, found: any}|null} */
let read = null;
/** @type {any} */
let view = null;

const chanceOf = ({ found: { candidates: [first] } }) => first?.probability ?? -1;
const stateOf = ({ mention, found, inBulk }) => (isOpen(mention) ? found.status : inBulk ? "accepted" : "decided");
const textOf = (cell) => (cell === null ? "" : typeof cell === "object" ? cell.date : String(cell));
const termOf = (row, place) => textOf(row[place]).trim().replace(/\s+/g, " ");
/** Equal for terms that are one, in whatever letters and blanks; a short one in capitals is another word. */
const keyOf = (term) => (term.length <= LONGEST_SHORT && term === term.toUpperCase() ? term : term.toLowerCase());
const addressOf = (id) => `reviews/columns/${id}/choices`;
const itemsOf = () => column?.items ?? [];

/** What is decided in one column, with its undo. */
function newBench() {
  const made = listBench({
    say, draw,
    focusSearch: () => view.panel.search.focus(),
    decide: (item, chosen, candidate) => change([item], () => ({ chosen, predicate: chosen === NIL ? "" : "exact", concept: candidate })),
    more: {
      sure() {
        const sure = itemsOf().filter(({ mention }) => isOpen(mention) && mention.certainty === "sure");
        if (!sure.length) { say("Nothing that is open is sure."); return; }
        const back = change(sure, ({ mention }) => ({ chosen: mention.cui, predicate: "", in_bulk: true }));
        if (!back) return;
        made.record(made.item(), back);
        draw();
        made.showOpen(made.item());
        say(`${sure.length} accepted, u takes ${sure.length === 1 ? "it" : "them"} back.`);
      },
      relate(item) {
        if (!item?.relation) { say("Choose a concept first."); return; }
        const predicate = RELATIONS[(RELATIONS.indexOf(item.relation) + 1) % RELATIONS.length];
        const back = change([item], () => ({ chosen: item.mention.chosen, predicate }));
        if (!back) return;
        made.record(item, back);
        draw([item]);
        say(`“${item.mention.text}”: ${predicate}.`);
      },
    },
  });
  return made;
}

/** Shows a choice. @param {Item} item @param {any} choice with the `concept`, if it may be no candidate */
function put(item, { chosen, predicate, in_bulk = false, concept }) {
  item.mention = { ...changeOf(/** @type {any} */ (item), chosen, concept).mention, chosen };
  item.relation = predicate;
  item.inBulk = in_bulk;
}

/**
 * Makes choices, and returns what takes them back, or null if nobody has a name.
 * @param {Item[]} items @param {(item: Item) => any} choiceOf
 */
function change(items, choiceOf) {
  const who = column?.id ? PAGE.reviewer() : "";
  if (!column || (column.id && !who)) return null;
  column.saved = Boolean(column.id);
  const step = { terms: items.map(({ number }) => number), before: write(items, items.map(choiceOf), who) };
  const back = takenBack(step, who);
  keepSteps([...keptSteps(), step]);
  return back;
}

/** What takes a step back, also after a reload. @param {Step} step @param {string} who */
function takenBack(step, who) {
  return () => {
    write(step.terms.map((number) => itemsOf()[number]), step.before, who);
    keepSteps(keptSteps().slice(0, -1));
    return true;
  };
}

/** What undo takes back in the column that is open, kept in this tab. @returns {Step[]} */
const keptSteps = () => (column?.id ? readKept(`${STEPS} ${column.id} ${reviewer()}`) : []);

/** @param {Step[]} steps */
function keepSteps(steps) {
  if (column?.id) keep(`${STEPS} ${column.id} ${reviewer()}`, steps.slice(-MOST_STEPS));
}

/** Writes choices, and returns those before. @param {Item[]} items @param {any[]} choices @param {string} who */
function write(items, choices, who) {
  const id = column?.id;
  const key = PAGE.key();
  const before = items.map(({ mention: { chosen, candidates }, relation, inBulk }) =>
    ({ chosen, predicate: relation, in_bulk: inBulk, concept: candidates.find((one) => one.cui === chosen) }));
  const writes = items.flatMap((item, at) => {
    const one = { to: id && addressOf(id), key: `${key}-${at}`, reviewer: who, term: item.number, before: before[at] };
    put(item, choices[at]);
    // What was accepted in bulk replaces no choice: undo takes the choice back before.
    const back = choices[at].in_bulk && before[at].chosen !== null ? [{ ...one, key: `${one.key}-0`, chosen: null }] : [];
    return [...back, { ...one, ...choices[at] }];
  });
  if (id) dispatch({ type: "queued", writes });
  return before;
}

addEventListener("beforeunload", (event) => { if (column && !column.saved) event.preventDefault(); });

// What the same person chose in another tab, and what the service did not take.
listen((state, before, event) => {
  if (!column?.id) return;
  const own = addressOf(column.id);
  const isOwn = (one) => one.to === own && one.reviewer === reviewer();
  const waits = new Set(state.writes.filter(isOwn).map((one) => /** @type {any} */ (one).term));
  const choices = event.type === "elsewhere" ? event.decisions.filter(isOwn)
    : event.type === "refused" ? before.writes.filter((one) => event.keys.includes(one.key) && isOwn(one)).map((/** @type {any} */ one) => ({ term: one.term, ...one.before }))
      : [];
  const changed = choices.filter(({ term }) => !waits.has(term));
  for (const one of changed) put(column.items[one.term], one);
  if (changed.length) draw();
});

/** Opens a column that the service keeps. @param {string} id */
async function open(id) {
  const who = reviewer();
  const found = await attempt("Reading …", () => readDecisions(() => get(`reviews/columns/${id}?reviewer=${encodeURIComponent(who)}`)));
  if (!found) return false;
  const { name, kb, sheet, decisions, concepts } = found;
  const rows = groupRows(sheet);
  const items = found.terms.map((one, number) => newItem(one.term, number, one.found, rows, one.verdicts));
  const named = new Map(concepts.map((one) => [one.cui, one]));
  const writes = getState().writes.filter((one) => one.to === addressOf(id) && one.reviewer === who);
  for (const one of [...decisions.map((choice) => ({ ...choice, concept: named.get(choice.chosen) })), ...writes]) put(items[one.term], one);
  start({ id, name, kb, sheet, items, saved: true });
  for (const step of keptSteps()) bench.record(items[step.terms[0]], takenBack(step, who));
  return true;
}

/** The rows of each term, by its key; empty cells are none. @returns {Map<string, any[][]>} */
function groupRows({ rows, place }) {
  const groups = new Map();
  for (const row of rows) {
    const key = keyOf(termOf(row, place));
    if (key) groups.set(key, [...groups.get(key) ?? [], row]);
  }
  return groups;
}

/** @returns {Item} */
function newItem(term, number, found, rows, verdicts = []) {
  const mention = newMention({ ...found, text: term, start: 0, end: 0 });
  return { number, found, mention, rows: rows.get(keyOf(term)) ?? [], relation: "", inBulk: false, verdicts };
}

/** @param {Column|null} opened */
function start(opened) {
  [column, filter, bench, read] = [opened, ALL, newBench(), null];
}

export async function render(main, info, id) {
  view = null;
  const offered = await attempt("Reading …", () => get("column/formats"));
  if (!offered) return null;
  if (id ? !(info.reviews && await open(id)) : column?.id) start(null);
  if (id && !column) { fill(main, make("p", {}, info.why), make("p", {}, make("a", { href: "#column" }, "All columns"))); return null; }
  const text = make("textarea", { id: "terms", dir: "auto", spellcheck: "false", rows: 4, value: sessionStorage.getItem(DRAFT) ?? "" });
  text.addEventListener("input", () => sessionStorage.setItem(DRAFT, text.value));
  const paste = () => {
    const lines = text.value.split(/\r?\n/).filter((line) => line.trim());
    if (!lines.length) { say("Paste some terms first.", true); return; }
    if (lines.length > offered.rows) { say(`At most ${offered.rows.toLocaleString("en")} terms at a time.`, true); return; }
    const name = `Terms ${localTime(new Date().toISOString())}`;
    map(name, { header: ["term"], rows: lines.map((line) => [line]), place: 0, subject: "" }, null, info);
  };
  const intro = make("details", { class: "intro", hidden: Boolean(id) }, make("summary", {}, "Terms, one a line, or a table"),
    make("label", { for: "terms" }, "Terms"), text,
    make("div", { class: "row" },
      make("button", { class: "main", id: "map", onclick: paste }, "Map"),
      fileField("table", "Table", {}, ([one]) => readFile(one, offered, info)),
      make("span", { class: "dim" }, offered.endings.join(" "), info.reviews ? "" : `; it stays until this page is closed. ${info.why}`)));
  const words = make("input", { id: "filter", type: "search", autocomplete: "off", value: filter.words });
  words.addEventListener("input", () => narrow({ words: words.value }));
  const list = makeList(bench, ["Term", "Concept", "Certainty", "State", "Given id"], "Terms", cellsOf);
  const [ask, facets, kept] = [make("div", { class: "row" }), make("span", { class: "facets" }), make("div", {})];
  const tools = make("div", { class: "row" },
    make("button", { id: "accept", onclick: () => { bench.more.sure(); list.focus(); } }, "Accept sure ", make("kbd", {}, "a")),
    make("label", {}, "Search ", words),
    select("of", "in", [["", "all columns"], ...(column?.sheet.header ?? []).map((name, at) => [String(at), name || `column ${at + 1}`])], filter.of, (of) => narrow({ of })),
    select("sort", "Sort by", [["", "row"], ...Object.keys(SORTS).map((one) => [one, one])], filter.sort, (sort) => narrow({ sort })),
    facets,
    menu("All shown",
      make("button", { id: "first", onclick: () => decideShown(({ mention: { candidates: [one] } }) => one && { chosen: one.cui, predicate: "exact" }) }, "Accept the first candidate of each"),
      make("button", { id: "nothing", onclick: () => decideShown(() => ({ chosen: NIL, predicate: "" })) }, "No concept in this vocabulary"),
      fileField("history", "As in a history", { accept: ".json" }, ([one]) => runHistory(one))),
    menu("Download", ...offered.formats.map((format) => make("button", { onclick: () => save(format) }, format)),
      make("button", { onclick: saveHistory }, "history.json"), make("span", { class: "dim" }, "What was decided, to be run on the next table.")),
    menu("Keys", listKeys(bench)));
  const title = column?.id
    ? [make("a", { href: "#column", class: "back" }, "All columns"), make("h2", { dir: "auto" }, column.name)]
    : [make("h2", {}, "Map a column of terms")];
  view = {
    ...workbench(main, bench, {
      bar: [...title, tools], pane: [intro, ask, kept, list.element], focus: list.focus, threshold: info.threshold,
    }),
    list, intro, ask, tools, facets, leave() { view = null; },
  };
  intro.open = !column;
  tools.hidden = !column;
  list.element.hidden = !column;
  narrow({});
  if (read && !id) askColumns(info);
  if (info.reviews && !column) await drawKept(kept, info);
  return view;
}

/** The columns that the service keeps. */
async function drawKept(element, info) {
  let columns = await attempt("", () => readDecisions(() => get(`reviews/columns?reviewer=${encodeURIComponent(reviewer())}`)));
  if (!columns?.length) return;
  const table = growingTable(["Column", "Decided", "Since", ""], "Columns", (one) => [
    make("a", { href: `#column/${one.id}`, dir: "auto" }, one.name),
    `${one.decisions} of ${one.terms}`,
    make("span", { class: "dim" }, localTime(one.time)),
    info.manages && sureButton("Delete", `Delete “${one.name}” for good?`, async () => {
      if (!await attempt("Deleting …", () => remove(`reviews/columns/${one.id}`))) return;
      columns = columns.filter((other) => other !== one);
      table.draw(columns);
      say("Deleted for good.");
    })]);
  table.draw(columns);
  fill(element, make("h3", {}, "Columns"), table.element);
}

async function readFile(one, offered, info) {
  const ending = offered.endings.find((known) => one.name.toLowerCase().endsWith(known));
  if (!ending) {
    say(`“${one.name}” is not a table that can be read: save it as ${offered.endings.join(", ")}.`, true);
    return;
  }
  const found = await attempt("Reading …", async () => {
    const headers = { "content-type": "application/octet-stream" };
    return (await send(`column/read?ending=${ending}`, { method: "POST", headers, body: one })).json();
  });
  if (!found) return;
  if (!found.rows.length) { say(`“${one.name}” has no rows.`, true); return; }
  read = { name: one.name.slice(-LONGEST_NAME), found };
  if (view) askColumns(info);
  say(`${countOf(found.rows.length, "row")}.`);
}

/** Asks for the columns of the table that was read. */
function askColumns(info) {
  if (!read) return;
  const { name, found } = read;
  const names = (header) => header.map((column, place) => column || `column ${place + 1}`);
  const first = make("input", { type: "checkbox", id: "headless" });
  const columns = names(found.header).map((name, at) => [String(at), name]);
  const known = columns.filter(([, name]) => columns.length === 1 || TERMS.test(name.trim()));
  let [place, subject, claimed] = [known.length === 1 ? known[0][0] : "", "", ""];
  fill(view.ask, select("which", "Column of the terms", [...(place ? [] : [["", "choose"]]), ...columns], place, (value) => { place = value; }),
    select("subject", "Column of ids", [["", "none"], ...columns], subject, (value) => { subject = value; }),
    select("claimed", "Ids to verify", [["", "none"], ...columns], claimed, (value) => { claimed = value; }),
    make("label", {}, first, " the first row is no header"),
    make("button", { class: "main", onclick: () => {
      if (!place) { say("Choose the column of the terms."); return; }
      const rows = first.checked ? [found.header, ...found.rows] : found.rows;
      const header = first.checked ? names(found.header.map(() => "")) : found.header;
      const sheet = { header, rows, place: Number(place), subject: subject && header[Number(subject)] };
      map(name, sheet, claimed === "" ? null : Number(claimed), info);
    } }, "Map it"));
}

/**
 * Maps a column, keeps it if the service does, and opens it.
 * @param {string} name @param {Column["sheet"]} sheet @param {number|null} claimed place of the ids to verify
 */
async function map(name, sheet, claimed, info) {
  const own = view;  // it is not left for another part when the column is mapped
  const rows = groupRows(sheet);
  const terms = [...rows.values()].map(([row]) => termOf(row, sheet.place));
  if (!terms.length) { say("That column has no terms.", true); return; }
  /** @type {Item[]} */
  const items = [];
  let kb = "";
  for (let place = 0; place < terms.length; place += AT_ONCE) {
    say(`Mapping ${place} of ${terms.length} …`);
    const part = terms.slice(place, place + AT_ONCE);
    const answer = await attempt("", () => post("column/map", { terms: part, k: CANDIDATES }));
    if (!answer) return;
    items.push(...answer.found.map((found, at) => newItem(part[at], place + at, found, rows)));
    if (claimed !== null && !await verify(items.slice(-part.length), claimed)) return;
    kb = answer.kb;
  }
  const id = info.reviews ? await attempt("Saving …", () => post("reviews/columns", {
    name, kb, sheet, terms: items.map(({ mention, found, verdicts }) => ({ term: mention.text, found, verdicts })),
  })) : null;
  if (id) {
    read = null;
    sessionStorage.removeItem(DRAFT);
  } else if (!column?.id) start({ id, name, kb, sheet, items, saved: true });
  const told = info.reviews && !id ? `${said()} It stays until this page is closed.`
    : `${countOf(terms.length, "term")} in ${countOf(sheet.rows.length, "row")}.`;
  if (view !== own) { say(told); return; }
  later.text = told;
  if (id) location.hash = `#column/${id}`;
  else dispatchEvent(new Event("hashchange"));
}

/** Asks whether the ids that rows of terms have are right, and returns whether it was answered. */
async function verify(some, claimed) {
  const pairs = some.flatMap((item) =>
    [...new Set(item.rows.map((row) => textOf(row[claimed]).trim()))].filter(Boolean).map((id) => ({ item, id })));
  for (let at = 0; at < pairs.length; at += AT_ONCE) {
    const part = pairs.slice(at, at + AT_ONCE);
    const answer = await attempt("", () => post("verify", { texts: part.map(({ item }) => item.mention.text), ids: part.map(({ id }) => id) }));
    if (!answer) return false;
    answer.verdicts.forEach(({ verdict, why }, number) => part[number].item.verdicts.push({ id: part[number].id, verdict, why }));
  }
  return true;
}

/** Shows other items, or in another order. @param {Partial<typeof ALL>} values */
function narrow(values) {
  filter = { ...filter, ...values };
  const words = filter.words.toLowerCase();
  const shown = itemsOf().filter((item) =>
    (!filter.state || stateOf(item) === filter.state)
    && (!words || item.rows.some((row) => row.some((cell, at) => (filter.of === "" || at === Number(filter.of)) && textOf(cell).toLowerCase().includes(words)))));
  bench.fill(filter.sort ? shown.sort(SORTS[filter.sort]) : shown);
}

function draw(changed) {
  if (!view) return;
  const item = bench.item();
  view.panel.draw(item, item?.relation ? [make("button", {
    type: "button", id: "relation", onclick: () => bench.more.relate(item),
  }, `It is the ${item.relation} concept `, make("kbd", {}, "r"))] : []);
  view.list.draw(changed);
  const kinds = Object.entries(STATES).map(([kind, name]) => ({ kind, name, count: itemsOf().filter((one) => stateOf(one) === kind).length }));
  fill(view.facets, ...kinds.filter(({ count }) => count).map(({ kind, name, count }) => make("button", {
    type: "button", class: "chip", "aria-pressed": String(filter.state === kind),
    onclick: () => narrow({ state: filter.state === kind ? "" : kind }),
  }, `${name} ${count}`)));
}

/** What else the rows of a term have. @param {Item} item */
function othersOf({ rows }) {
  if (!column) return [];
  const { header, place } = column.sheet;
  const texts = rows.slice(0, SHOWN_ROWS).map((row) => header.flatMap((name, at) =>
    (at === place || !textOf(row[at]).trim() ? [] : [`${name}: ${textOf(row[at])}`])).join(", ")).filter(Boolean);
  return [...new Set(texts)].map((text) => make("div", { class: "dim", dir: "auto" }, text));
}

function cellsOf(item) {
  const { mention, found: { candidates: [first], dropped, read_as: readAs }, rows, relation, verdicts } = item;
  const cui = mention.chosen ?? mention.cui;
  return [
    make("span", { dir: "auto" }, mention.text, rows.length > 1 && make("span", { class: "dim" }, ` × ${rows.length}`),
      dropped.length > 0 && make("div", { class: "dim" }, `read as “${readAs}”, without ${dropped.join(", ")}`),
      ...(item === bench.item() ? othersOf(item) : [])),
    cui ? nameWithCode(cui, mention) : first && make("span", { class: "dim" }, nameWithCode(first.cui, mention), " ?"),
    mention.certainty === "tied" ? "several fit" : first ? strength(first) : "",
    `${STATES[stateOf(item)] ?? stateOf(item)}${relation && relation !== "exact" ? `, ${relation}` : ""}`,
    verdicts.length ? make("span", { title: verdicts.map(({ why }) => why).join(" ") }, verdicts.map(({ id, verdict }) => `${id}: ${verdict}`).join(", ")) : "",
  ];
}

/** Decides what is shown and open, as one step. @param {(item: Item) => any} choiceOf undefined = it stays open */
function decideShown(choiceOf) {
  const some = bench.shown().filter((item) => isOpen(item.mention) && choiceOf(item));
  const back = some.length ? change(some, choiceOf) : null;
  if (!back) { if (!some.length) say("Nothing that is shown can be decided so."); return; }
  bench.record(some[0], back);
  draw();
  bench.showOpen(some[0]);
  say(`${some.length} decided, u takes ${some.length === 1 ? "it" : "them"} back.`);
}

/** Downloads what was decided one by one. */
function saveHistory() {
  if (!column) return;
  const { sheet: { header, place }, kb, items } = column;
  const choices = items.filter((item) => stateOf(item) === "decided")
    .map(({ mention, relation }) => ({ term: mention.text, chosen: mention.chosen, predicate: relation }));
  saveBlob("history.json", new Blob([JSON.stringify({ column: header[place], kb, choices }, null, 1)], { type: "application/json" }));
}

/** Decides as it was decided in another table, where the terms are the same. @param {File} file */
async function runHistory(file) {
  let found = new Map();
  try {
    const { choices } = JSON.parse(await file.text());
    const isChoice = ({ term, chosen, predicate }) => [term, chosen].every((one) => one && typeof one === "string") && ["", ...RELATIONS].includes(predicate);
    if (!choices.every(isChoice)) throw new Error();
    found = new Map(choices.map(({ term, ...choice }) => [keyOf(term), choice]));
  } catch { say(`“${file.name}” is no history of a column: download one under Download.`, true); return; }
  narrow(ALL);
  decideShown(({ mention }) => found.get(keyOf(mention.text)));
}

async function save(format) {
  if (!column) return;
  const { sheet: { header, rows, place, subject }, kb, items } = column;
  const texts = new Map(items.map(({ mention: { text } }) => [keyOf(text), text]));
  const body = {
    header, rows, kb, subject, reviewer: reviewer(),
    terms: rows.map((row) => texts.get(keyOf(termOf(row, place))) ?? ""),
    mapped: Object.fromEntries(items.map(({ mention, found, relation, inBulk }) =>
      [mention.text, { found, chosen: inBulk ? "" : mention.chosen ?? "", predicate: relation }])),
  };
  if (await saveFile(`column/write?format=${format}`, withJson(body))) column.saved = true;
}
