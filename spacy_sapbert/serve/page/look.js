// Vocabulary: search, the hierarchy, and all about a concept.

import { attempt, get } from "./api.js";
import { label, link, showConcept } from "./concept.js";
import { fill, make, pairs } from "./dom.js";
import { searchField } from "./search.js";

/** @param {HTMLElement} main @param {any} info @param {string} cui */
export async function render(main, info, cui) {
  const about = make("section", { class: "panel", "aria-label": "Concept" });
  const results = make("div", {});
  const tree = make("div", {});
  const open = (/** @type {string} */ id) => { location.hash = `#look/${encodeURIComponent(id)}`; };
  const search = searchField({
    id: "find", label: "Search",
    onfound: (concepts) => fill(results, ...(concepts ?? []).map((one) => make("div", {}, link(one))),
      concepts && !concepts.length && make("p", {}, "Nothing found.")),
    onchoose: (one) => open(one.cui),
  });
  fill(main,
    make("h2", {}, "The vocabulary"),
    pairs([
      ["Sources", info.sources.join(", ")],
      ["Concepts", info.counts.concepts.toLocaleString("en")],
      ["Least score of a link", info.threshold],
      ["Least probability of a link", info.least_probability],
      ["Learned from", info.taught ? `${info.taught.concepts} concepts of decisions` : ""],
    ]),
    make("div", { class: "row" }, search.element),
    make("div", { class: "two" }, make("div", {}, results, make("h3", {}, "Hierarchy"), tree), about));
  about.hidden = !cui;
  const path = cui ? await attempt("Reading …", () => get(`concepts/${encodeURIComponent(cui)}?related=5`)) : null;
  if (cui && !path) fill(about, make("p", {}, `There is no concept with the id “${cui}” in this vocabulary.`));
  if (path) await showConcept(about, cui, path);
  const found = await attempt("Reading …", () => get("roots"));
  if (!found) return;
  const above = new Set((path?.path ?? []).map((/** @type {any} */ one) => one.cui));
  const show = (/** @type {any} */ one) => {
    history.replaceState(null, "", `#look/${encodeURIComponent(one.cui)}`);
    about.hidden = false;
    showConcept(about, one.cui);
  };
  const branches = found.concepts.map((/** @type {any} */ one) => branch(one, above, path?.cui, show));
  fill(tree, ...(await Promise.all(branches)));
  if (!found.concepts.length) fill(tree, make("p", { class: "dim" }, "It has no hierarchy."));
  tree.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
}

/**
 * A concept with those below it, opened on the way to the chosen one.
 * @param {any} one @param {Set<string>} above @param {string|undefined} chosen
 * @param {(one: any) => void} show
 * @returns {Promise<HTMLElement>}
 */
async function branch(one, above, chosen, show) {
  const inside = make("div", { class: "branch" });
  const details = make("details", {}, make("summary", {
    title: label(one), "aria-current": one.cui === chosen ? "true" : null, onclick: () => show(one),
  }, one.name ?? one.cui), inside);
  const load = async () => {
    if (inside.childNodes.length) return;
    const path = `concepts/${encodeURIComponent(one.cui)}?related=0`;
    const found = await attempt("Reading …", () => get(path));
    if (!found) return;
    const below = await Promise.all(found.children.map((/** @type {any} */ child) => branch(child, above, chosen, show)));
    const more = found.children_total - found.children.length;
    fill(inside, ...below, more > 0 && make("p", { class: "dim" }, `and ${more} more: search for them`),
      !below.length && make("p", { class: "dim" }, "Nothing below."));
  };
  details.addEventListener("toggle", () => details.open && load());
  if (above.has(one.cui) && one.cui !== chosen) {
    await load();
    details.open = true;
  }
  return details;
}
