// Look: the hierarchy of the knowledge base, and a search in it.

import { attempt, get } from "/page/api.js";
import { label, link, showConcept } from "/page/concept.js";
import { fill, make, pairs, say } from "/page/dom.js";

export async function render(main, info, cui) {
  const about = make("section", { class: "panel", "aria-label": "Concept" });
  const results = make("div", {});
  const search = make("input", { id: "find", type: "search", maxlength: 200 });
  const find = async () => {
    if (!search.value.trim()) return;
    const path = `/search?k=20&q=${encodeURIComponent(search.value.trim())}`;
    const found = await attempt("Searching …", () => get(path));
    if (!found) return;
    say(`${found.concepts.length} concepts.`);
    fill(results, ...found.concepts.map((one) => make("div", {}, link(one))));
  };
  search.addEventListener("keydown", (event) => event.key === "Enter" && find());
  const tree = make("div", {});
  fill(main,
    make("h2", {}, "The vocabulary"),
    pairs([
      ["Sources", info.sources.join(", ")],
      ["Concepts", info.counts.concepts.toLocaleString("en")],
      ["Digest", info.digest.slice(0, 16)],
      ["Threshold", info.threshold === null ? "none" : String(info.threshold)],
      ["Taught with", info.taught ? `${info.taught.documents ?? ""} documents` : ""],
    ]),
    make("div", { class: "row" }, make("label", { for: "find" }, "Search"), search,
      make("button", { onclick: find }, "Search")),
    make("div", { class: "two" }, make("div", {}, results, make("h3", {}, "Hierarchy"), tree), about));
  about.hidden = !cui;
  if (cui) showConcept(about, cui);
  const found = await attempt("Reading …", () => get("/roots"));
  if (!found) return;
  say("");
  fill(tree, ...found.concepts.map((one) => branch(one, about)));
  if (!found.concepts.length) fill(tree, make("p", { class: "dim" }, "It has no hierarchy."));
}

function branch(one, about) {
  const inside = make("div", {});
  const more = make("button", {
    type: "button", "aria-label": `More about ${label(one)}`,
    onclick: () => { about.hidden = false; showConcept(about, one.cui); },
  }, one.cui);
  const details = make("details", {}, make("summary", {}, one.name ?? one.cui), more, inside);
  details.addEventListener("toggle", async () => {
    if (!details.open || inside.childNodes.length) return;
    const path = `/concepts/${encodeURIComponent(one.cui)}?related=0`;
    const found = await attempt("Reading …", () => get(path));
    if (!found) return;
    say(`${found.children_total} below.`);
    fill(inside, ...found.children.map((child) => branch(child, about)));
  });
  return details;
}
