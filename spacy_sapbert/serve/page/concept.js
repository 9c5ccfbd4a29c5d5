// One concept: names, definition, codes, place in the hierarchy, what is near.

import { attempt, get } from "/page/api.js";
import { fill, make, pairs, score } from "/page/dom.js";

const path = (cui) => `/concepts/${encodeURIComponent(cui)}`;

export function label(one) {
  return `${one.name ?? "not in the knowledge base"} (${one.cui})`;
}

export function link(one) {
  return make("a", { href: `#look/${encodeURIComponent(one.cui)}` }, label(one));
}

function links(list, total = list.length) {
  if (!list.length) return null;
  const items = list.map((one) => make("div", {}, link(one)));
  if (total > list.length) items.push(make("div", {}, `and ${total - list.length} more`));
  return make("div", {}, ...items);
}

export async function showConcept(element, cui) {
  const found = await attempt("Reading …", () => get(path(cui)));
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
      ["Types", found.types.join(", ")],
      ["Codes", codes],
      ["Names", found.names.join("; ")],
      ["Above", links(found.parents)],
      ["Below", links(found.children, found.children_total)],
      ["Near", links(found.related.slice(0, 5))],
      ["Once", found.retired.join(", ")],
    ]));
  document.getElementById("status").textContent = "";
}

// Why a mention has its concept.
export function describeReasons(found) {
  const others = found.filtered.map((one) => `${one.name} (${one.filtered_by.join(", ")})`);
  return pairs([
    ["Looked up as", found.text === found.mention ? "" : found.text],
    ["Reason for none", found.cui ? "" : found.note ?? ""],
    ["Threshold", found.threshold === null ? "none" : String(found.threshold)],
    ["Filtered", others.join("; ")],
    ["First", found.candidates.length ? score(found.candidates[0].score, "score") : "none"],
    ["Advice", found.suggestions.join(" ")],
  ]);
}
