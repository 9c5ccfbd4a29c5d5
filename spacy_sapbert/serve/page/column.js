// Column: a table with a column of terms, mapped, corrected and downloaded. What was shown
// is what is written. It is kept while the page is open, and nowhere else.

import { attempt, get, post, reviewer, saveFile, send, withJson } from "./api.js";
import { listKeys, makeList, menu, workbench } from "./bench.js";
import { listBench, nameOf } from "./deciding.js";
import { countOf, fileField, fill, make, say, select, strength } from "./dom.js";
import { NIL, changeOf, isOpen, newMention } from "./state.js";

const AT_ONCE = 100;  // terms of a request
const CANDIDATES = 5;
const STATES = { decided: "decided ✓", exact: "exact", linked: "linked", review: "to review", none: "nothing found" };
const RELATIONS = ["exact", "broad", "narrow", "related"];
const ALL = { state: "", words: "", sort: "" };
/** How rows are sorted. @type {{[name: string]: (a: any, b: any) => number}} */
const SORTS = {
  term: (a, b) => a.mention.text.localeCompare(b.mention.text),
  certainty: (a, b) => chanceOf(b) - chanceOf(a),
};

/**
 * @typedef {object} Item a term, which may be in several rows
 * @property {import("./state.js").Mention} mention
 * @property {any} found what the service said of it
 * @property {number} times
 * @property {string} relation of the term to what is chosen
 * @property {any[]} verdicts on the ids that its rows have
 */

/** Header and rows, the place of the column of the terms, and the name of that of ids. @type {any} */
let table = null;
let kb = "";  // digest of the knowledge base that was asked
/** @type {Item[]} */
let items = [];
let filter = ALL;
let draft = "";
let kept = true;  // what was decided was downloaded
/** @type {any} */
let view = null;

const chanceOf = ({ found: { candidates: [first] } }) => first?.probability ?? first?.score ?? -1;
const stateOf = ({ mention, found }) => (isOpen(mention) ? found.status : "decided");
const textOf = (cell) => (cell === null ? "" : typeof cell === "object" ? cell.date : String(cell));

const bench = listBench({
  say, draw,
  focusSearch: () => view.panel.search.focus(),
  decide: (item, chosen, candidate) => change([item], () => ({
    mention: { ...changeOf(item, chosen, candidate).mention, chosen }, relation: chosen === NIL ? "" : "exact",
  })),
  more: {
    sure() {
      const sure = items.filter(({ mention }) => isOpen(mention) && mention.certainty === "sure");
      if (!sure.length) { say("Nothing that is open is sure."); return; }
      bench.record(bench.item(), change(sure, ({ mention }) => ({ mention: { ...mention, chosen: mention.cui }, relation: "exact" })));
      draw();
      bench.showOpen(bench.item());
      say(`${sure.length} accepted, u takes ${sure.length === 1 ? "it" : "them"} back.`);
    },
    relate(item) {
      if (!item?.relation) { say("Choose a concept first."); return; }
      const relation = RELATIONS[(RELATIONS.indexOf(item.relation) + 1) % RELATIONS.length];
      bench.record(item, change([item], () => ({ relation })));
      draw([item]);
      say(`“${item.mention.text}”: ${relation}.`);
    },
  },
});

/** Changes items, and returns what takes it back. @param {Item[]} changed @param {(item: Item) => Partial<Item>} values */
function change(changed, values) {
  const before = changed.map(({ mention, relation }) => ({ mention, relation }));
  for (const item of changed) Object.assign(item, values(item));
  kept = false;
  return () => {
    changed.forEach((item, at) => Object.assign(item, before[at]));
    return true;
  };
}

addEventListener("beforeunload", (event) => { if (!kept) event.preventDefault(); });

export async function render(main, info) {
  const offered = await attempt("Reading …", () => get("column/formats"));
  if (!offered) return null;
  const text = make("textarea", { id: "terms", dir: "auto", spellcheck: "false", rows: 4, value: draft });
  text.addEventListener("input", () => { draft = text.value; });
  const paste = () => {
    const lines = text.value.split(/\r?\n/).filter((line) => line.trim());
    if (!lines.length) { say("Paste some terms first.", true); return; }
    if (lines.length > offered.rows) { say(`At most ${offered.rows.toLocaleString("en")} terms at a time.`, true); return; }
    map({ header: ["term"], rows: lines.map((line) => [line]), place: 0, subject: "", claimed: "" });
  };
  const intro = make("details", { class: "intro" }, make("summary", {}, "Terms, one a line, or a table"),
    make("label", { for: "terms" }, "Terms"), text,
    make("div", { class: "row" },
      make("button", { class: "main", id: "map", onclick: paste }, "Map"),
      fileField("table", "Table", {}, ([one]) => readFile(one, offered)),
      make("span", { class: "dim" }, `${offered.endings.join(" ")}; it stays until this page is closed.`)));
  const words = make("input", { id: "filter", type: "search", autocomplete: "off", value: filter.words });
  words.addEventListener("input", () => narrow({ words: words.value }));
  const list = makeList(bench, ["Term", "Concept", "Certainty", "State", "Given id"], "Terms", cellsOf);
  const [ask, facets] = [make("div", { class: "row" }), make("span", { class: "facets" })];
  const tools = make("div", { class: "row" },
    make("button", { id: "accept", onclick: () => { bench.more.sure(); list.focus(); } }, "Accept sure ", make("kbd", {}, "a")),
    make("label", {}, "Search ", words),
    select("sort", "Sort by", [["", "row"], ...Object.keys(SORTS).map((one) => [one, one])], filter.sort, (sort) => narrow({ sort })),
    facets,
    menu("Download", ...offered.formats.map((format) => make("button", { onclick: () => save(format) }, format))),
    menu("Keys", listKeys(bench)));
  view = {
    ...workbench(main, bench, {
      bar: [make("h2", {}, "Map a column of terms"), tools], pane: [intro, ask, list.element], focus: list.focus, threshold: info.threshold,
    }),
    list, intro, ask, tools, facets, leave() { view = null; },
  };
  show();
  return view;
}

async function readFile(one, offered) {
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
  const names = (header) => header.map((column, place) => column || `column ${place + 1}`);
  const first = make("input", { type: "checkbox", id: "headless" });
  let [place, subject, claimed] = ["0", "", ""];
  const columns = names(found.header).map((name, at) => [String(at), name]);
  fill(view.ask, select("which", "Column of the terms", columns, place, (value) => { place = value; }),
    select("subject", "Column of ids", [["", "none"], ...columns], subject, (value) => { subject = value; }),
    select("claimed", "Ids to verify", [["", "none"], ...columns], claimed, (value) => { claimed = value; }),
    make("label", {}, first, " the first row is no header"),
    make("button", { class: "main", onclick: () => {
      const rows = first.checked ? [found.header, ...found.rows] : found.rows;
      const header = first.checked ? names(found.header.map(() => "")) : found.header;
      map({ header, rows, place: Number(place), subject: subject && header[Number(subject)], claimed: claimed && Number(claimed) });
    } }, "Map it"));
  say(`${countOf(found.rows.length, "row")}.`);
}

async function map(given) {
  const times = Map.groupBy(given.rows, (row) => textOf(row[given.place]));
  const terms = [...times.keys()];
  /** @type {Item[]} */
  const mapped = [];
  for (let place = 0; place < terms.length; place += AT_ONCE) {
    say(`Mapping ${place} of ${terms.length} …`);
    const part = terms.slice(place, place + AT_ONCE);
    const answer = await attempt("", () => post("column/map", { terms: part, k: CANDIDATES }));
    if (!answer) return;
    mapped.push(...answer.found.map((found, at) => ({
      found, mention: newMention({ ...found, text: part[at], start: 0, end: 0 }), times: times.get(part[at])?.length, relation: "", verdicts: [],
    })));
    if (given.claimed !== "" && !await verify(mapped.slice(-part.length), times, given.claimed)) return;
    kb = answer.kb;
  }
  [table, items, filter, kept] = [given, mapped, ALL, true];
  say(`${countOf(terms.length, "term")} in ${countOf(table.rows.length, "row")}.`);
  if (view) fill(view.ask);
  show();
}

/** Asks whether the ids that rows of terms have are right, and returns whether it was answered. */
async function verify(some, times, claimed) {
  const pairs = some.flatMap((item) => [...new Set(times.get(item.mention.text).map((row) => textOf(row[claimed]).trim()))]
    .filter(Boolean).map((id) => ({ item, id })));
  for (let place = 0; place < pairs.length; place += AT_ONCE) {
    const part = pairs.slice(place, place + AT_ONCE);
    const answer = await attempt("", () => post("verify", { texts: part.map(({ item }) => item.mention.text), ids: part.map(({ id }) => id) }));
    if (!answer) return false;
    answer.verdicts.forEach((verdict, at) => part[at].item.verdicts.push({ id: part[at].id, ...verdict }));
  }
  return true;
}

function show() {
  if (view) view.intro.open = !items.length;
  if (view) view.tools.hidden = !items.length;
  narrow({});
}

/** Shows other items, or in another order. @param {Partial<typeof ALL>} values */
function narrow(values) {
  filter = { ...filter, ...values };
  const words = filter.words.toLowerCase();
  const shown = items.filter((item) =>
    (!filter.state || stateOf(item) === filter.state) && item.mention.text.toLowerCase().includes(words));
  bench.fill(filter.sort ? shown.sort(SORTS[filter.sort]) : shown);
}

function draw(changed) {
  if (!view) return;
  const item = bench.item();
  view.panel.draw(item, item?.relation ? [make("button", {
    type: "button", id: "relation", onclick: () => bench.more.relate(item),
  }, `It is the ${item.relation} concept `, make("kbd", {}, "r"))] : []);
  view.list.draw(changed);
  const kinds = Object.entries(STATES).map(([kind, name]) => ({ kind, name, count: items.filter((one) => stateOf(one) === kind).length }));
  fill(view.facets, ...kinds.filter(({ count }) => count).map(({ kind, name, count }) => make("button", {
    type: "button", class: "chip", "aria-pressed": String(filter.state === kind),
    onclick: () => narrow({ state: filter.state === kind ? "" : kind }),
  }, `${name} ${count}`)));
}

function cellsOf(item) {
  const { mention, found: { candidates: [first] }, times, relation, verdicts } = item;
  const cui = mention.chosen ?? mention.cui;
  return [
    make("span", { dir: "auto" }, mention.text, times > 1 && make("span", { class: "dim" }, ` × ${times}`)),
    cui ? make("span", { dir: "auto" }, nameOf(cui, mention)) : first && make("span", { dir: "auto", class: "dim" }, `${first.name} ?`),
    mention.certainty === "tied" ? "several fit" : first ? strength(first) : "",
    `${STATES[stateOf(item)] ?? stateOf(item)}${relation && relation !== "exact" ? `, ${relation}` : ""}`,
    verdicts.length ? make("span", { title: verdicts.map(({ why }) => why).join(" ") }, verdicts.map(({ id, verdict }) => `${id}: ${verdict}`).join(", ")) : "",
  ];
}

async function save(format) {
  if (!table) return;
  const { header, rows, place, subject } = table;
  const body = {
    header, rows, kb, subject, reviewer: reviewer(),
    terms: rows.map((row) => textOf(row[place])),
    mapped: Object.fromEntries(items.map(({ mention, found, relation }) =>
      [mention.text, { found, chosen: mention.chosen ?? "", predicate: relation }])),
  };
  kept = await saveFile(`column/write?format=${format}`, withJson(body)) || kept;
}
