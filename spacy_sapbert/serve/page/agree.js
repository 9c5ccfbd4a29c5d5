// Agree: where reviewers differ, what they agree on, and files of the decisions.

import { attempt, get, hasName, randomKey, reviewer, send } from "./api.js";
import { download, fill, growingTable, make, say, select, table } from "./dom.js";
import { searchButton } from "./search.js";
import { dispatch, flush, getState } from "./session.js";
import { NIL, NO_MENTION, changeOf, newMention } from "./state.js";

const AGREED = "agreed";  // in exports: what holds
let filter = { document: "", reviewer: "", open: "true" };

/** @param {HTMLElement} main @param {any} info */
export async function render(main, info) {
  fill(main, make("h2", {}, "Agree"));
  if (info.why) { main.append(make("p", {}, info.why)); return; }
  await flush();
  const found = await attempt("Reading …", async () => {
    const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value));
    const [listed, agreement, differences] = await Promise.all(
      ["reviews/documents", "reviews/agreement", `reviews/differences?${query}`].map(get));
    return { ...listed, ...agreement, differences };
  });
  if (!found) return;
  const people = found.reviewers;
  const choose = (/** @type {keyof typeof filter} */ key, /** @type {string} */ text, /** @type {[string, string][]} */ options) =>
    select(`of-${key}`, text, options, filter[key], (value) => { filter = { ...filter, [key]: value }; render(main, info); });
  fill(main,
    make("h2", {}, "Where reviewers differ"),
    make("div", { class: "row" },
      ...choose("open", "Show", [["true", "what is not settled"], ["", "all"]]),
      ...choose("document", "Note", [["", "all"], ...found.documents.map((/** @type {any} */ one) => [one.id, one.name])]),
      ...choose("reviewer", "Reviewer", [["", "all"], ...people.map((/** @type {string} */ name) => [name, name])])),
    ...drawDifferences(found.differences, info.digest),
    make("h2", {}, "Agreement"),
    found.pairs.length ? table(["Reviewers", "Mentions of both", "Agree", "Cohen’s kappa", "F1 with spans"],
      found.pairs.map((/** @type {any} */ one) => [one.reviewers.join(" and "), one.mentions, one.agree, one.kappa, one.f1]),
      "Agreement") : make("p", {}, people.length > 1 ? "No note has decisions of two reviewers yet."
      : "When two people decide on the same notes, you see here how far they agree."),
    make("h2", {}, "Download the decisions"),
    drawDownload(found, people));
}

/** @param {any} found @param {string} kb digest of the knowledge base */
function drawDifferences(found, kb) {
  if (!found.places.length) return [make("p", {}, "Nowhere.")];
  const people = [...new Set(found.places.flatMap((/** @type {any} */ one) => Object.keys(one.choices)))].sort();
  const name = (/** @type {string|null} */ cui) => (cui === null || cui === NO_MENTION ? "not a mention"
    : cui === NIL ? "no concept" : found.names[cui] ?? cui);
  const left = make("span", { role: "status" });
  let open = found.open;
  const count = () => fill(left, `${open} of ${found.total} are not settled. `);
  /** @type {{step: any, back: () => void}[]} */
  const settled = [];
  const undo = () => {
    const last = settled.pop();
    if (!last || getState().undo.at(-1) !== last.step) { say("Nothing to undo."); return; }
    dispatch({ type: "undone", key: randomKey() });
    last.back();
    say("Undone.");
  };
  const draw = (/** @type {any} */ one) => {
    const { place, choices } = one;
    const cell = make("div", { class: "choices" });
    const set = (/** @type {string|null} */ cui) => {
      open += Number(cui === null) - Number(one.agreed === null);
      one.agreed = cui;
      show();
      count();
    };
    const settle = (/** @type {string} */ cui) => {
      const before = one.agreed;
      if (!hasName() || cui === before) return;
      const item = { document: place.document, name: place.name, mention: newMention(place, before) };
      dispatch({ type: "changed", changes: [changeOf(item, cui)], about: { reviewer: reviewer(), kb, settles: true }, key: randomKey() });
      settled.push({ step: getState().undo.at(-1), back: () => set(before) });
      set(cui);
    };
    const show = () => fill(cell, ...[...new Set([...Object.values(choices).map((each) => each ?? NO_MENTION), one.agreed].filter(Boolean))]
      .map((cui) => make("button", {
        type: "button", class: "chip", "aria-pressed": String(one.agreed === cui), onclick: () => settle(cui),
      }, name(cui))),
    searchButton(place.text, `other-${place.document}-${place.start}`, (concept) => {
      found.names[concept.cui] = concept.name;
      settle(concept.cui);
    }));
    show();
    const where = make("span", { dir: "auto" }, make("a", { href: `#note/${place.document}/${place.start}` }, place.name), ": ",
      place.before.slice(-40).replace(/\s+/g, " "), make("strong", {}, place.text), place.after.slice(0, 40).replace(/\s+/g, " "));
    return [where, ...people.map((who) => (who in choices ? name(choices[who]) : "–")), cell];
  };
  count();
  const list = growingTable(["Where", ...people, "Agreed"], draw, "Differences");
  list.draw(found.places);
  return [make("p", {}, left, make("button", { type: "button", id: "undo", onclick: undo }, "Undo")), list.element];
}

/** @param {any} found @param {string[]} people */
function drawDownload(found, people) {
  let [who, kind] = [AGREED, found.formats[0]];
  return make("div", { class: "row" },
    ...select("who", "Of", [[AGREED, "what is agreed"], ["", "all reviewers, one by one"], ...people.map((name) => [name, name])],
      who, (value) => { who = value; }),
    ...select("kind", "as", found.formats.map((/** @type {string} */ name) => [name, name]), kind, (value) => { kind = value; }),
    make("button", { id: "export", onclick: () => save(kind, who) }, "Download"));
}

/** @param {string} format @param {string} who */
async function save(format, who) {
  const path = `reviews/export?format=${format}${who ? `&reviewer=${encodeURIComponent(who)}` : ""}`;
  const found = await attempt("Writing …", async () => {
    const answer = await send(path);
    const name = answer.headers.get("content-disposition")?.match(/"(.+)"/)?.[1] ?? "reviews";
    return { data: await answer.blob(), name };
  });
  if (!found) return;
  download(found.data, found.name);
  say("Downloaded.");
}
