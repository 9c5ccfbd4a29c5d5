// Vocabulary: search, and all about a concept, with what is above and below it.

import { attempt, get } from "./api.js";
import { fill, make, pairs } from "./dom.js";
import { searchField } from "./search.js";
import { nameTypes } from "./words.js";

let words = "";  // that were searched for last

/** A link to a concept, and the name that was found if it is not the preferred one. */
function link({ cui, name, alias = name }) {
  const text = `${name ?? "not in the knowledge base"} (${cui})`;
  return make("span", {}, make("a", { href: `#look/${encodeURIComponent(cui)}` }, text),
    alias !== name && make("span", { class: "dim" }, " ", make("bdi", {}, alias)));
}

/** Links to concepts, one a line. */
function links(list, total = list.length) {
  if (!list.length) return null;
  return make("div", {}, ...list.map((one) => make("div", {}, link(one))),
    total > list.length && make("div", { class: "dim" }, `and ${total - list.length} more: search for them`));
}

export async function showConcept(element, cui) {
  const found = await attempt("Reading …", () => get(`concepts/${encodeURIComponent(cui)}`));
  if (!found) { fill(element, make("p", {}, `There is no concept with the id “${cui}” in this vocabulary.`)); return; }
  const codes = Object.entries(found.codes).map(([source, list]) => `${source} ${list.join(", ")}`);
  const path = found.path.slice(0, -1).flatMap((one) => [link(one), " › "]);
  fill(element,
    make("h3", {}, found.name),
    found.definition && make("p", {}, found.definition),
    pairs([
      ["Id", found.url ? make("a", { href: found.url, rel: "noreferrer noopener", target: "_blank" }, found.cui) : found.cui],
      ["Kind", nameTypes(found.types)],
      ["Codes", codes.join("; ")],
      ["Names", found.names.join("; ")],
      ["Place", path.length ? make("div", {}, ...path, found.name) : ""],
      ["Above", links(found.parents)],
      ["Below", links(found.children, found.children_total)],
      ["Near", links(found.related.slice(0, 5))],
      ["Earlier ids", found.retired.join(", ")],
    ]));
}

export async function render(main, info, cui) {
  const about = make("section", { class: "panel", "aria-label": "Concept", hidden: !cui });
  const results = make("div", {});
  const hierarchy = make("div", {});
  const search = searchField({
    id: "find", label: "Search", value: words,  // what was found stays beside the concept
    onfound(concepts) {
      words = search.field.value;
      fill(results, concepts && (links(concepts) ?? make("p", {}, "Nothing found.")));
    },
    onchoose: (one) => { location.hash = `#look/${encodeURIComponent(one.cui)}`; },
  });
  fill(main,
    make("h2", {}, "The vocabulary"),
    pairs([
      ["Sources", info.sources.join(", ")],
      ["Concepts", info.counts.concepts.toLocaleString("en")],
    ]),
    make("div", { class: "row" }, search.element),
    make("div", { class: "two" }, make("div", {}, results, hierarchy), about));
  if (cui) await showConcept(about, cui);
  const found = await attempt("Reading …", () => get("roots"));
  if (found?.concepts.length) fill(hierarchy, make("h3", {}, "Hierarchy"), links(found.concepts));
}
