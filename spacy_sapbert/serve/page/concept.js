// One concept: names, definition, codes, place in the hierarchy, what is near.

import { attempt, get } from "./api.js";
import { fill, make, pairs, strength } from "./dom.js";
import { explainNote, nameTypes } from "./words.js";

const path = (/** @type {string} */ cui) => `concepts/${encodeURIComponent(cui)}`;

/** @param {any} one */
export function label(one) {
  return `${one.name ?? "not in the knowledge base"} (${one.cui})`;
}

/** @param {any} one */
export function link(one) {
  return make("a", { href: `#look/${encodeURIComponent(one.cui)}` }, label(one));
}

/** @param {any[]} list @param {number} total */
function links(list, total = list.length) {
  if (!list.length) return null;
  const items = list.map((one) => make("div", {}, link(one)));
  if (total > list.length) items.push(make("div", {}, `and ${total - list.length} more`));
  return make("div", {}, ...items);
}

/**
 * @param {HTMLElement} element
 * @param {string} cui
 * @param {any} [known] what the service says of it
 */
export async function showConcept(element, cui, known) {
  const found = known ?? await attempt("Reading …", () => get(path(cui)));
  if (!found) return;
  const codes = Object.entries(found.codes)
    .map(([source, list]) => `${source} ${list.join(", ")}`).join("; ");
  fill(element,
    make("h3", {}, found.name),
    found.definition ? make("p", {}, found.definition) : null,
    pairs([
      ["Id", found.url
        ? make("a", { href: found.url, rel: "noreferrer noopener", target: "_blank" }, found.cui)
        : found.cui],
      ["Kind", nameTypes(found.types)],
      ["Codes", codes],
      ["Names", found.names.join("; ")],
      ["Above", links(found.parents)],
      ["Below", links(found.children, found.children_total)],
      ["Near", links(found.related.slice(0, 5))],
      ["Earlier ids", found.retired.join(", ")],
    ]));
}

// Why a mention has its concept.

/** @param {any} found */
export function describeReasons(found) {
  const others = found.filtered.map((/** @type {any} */ one) => `${one.name} (${one.filtered_by.join(", ")})`);
  return pairs([
    ["Looked up as", found.text === found.mention ? "" : found.text],
    ["Why no concept", found.cui ? "" : explainNote(found.note, found.candidates[0], found.threshold)],
    ["Least score of a link", found.threshold],
    ["Least probability of a link", found.least_probability],
    ["Not allowed", others.join("; ")],
    ["First candidate", found.candidates.length ? strength(found.candidates[0]) : "none"],
  ]);
}
