// A list of decided mentions that opens them in their notes.

import { attempt, get } from "./api.js";
import { countOf, fill, make } from "./dom.js";

/**
 * A name that opens the places where it was decided.
 * @param {string} label
 * @param {{text?: string, chosen?: string}} query
 */
export function placesOf(label, query) {
  const inside = make("ul", { class: "found" });
  const details = make("details", {}, make("summary", { dir: "auto" }, label), inside);
  details.addEventListener("toggle", async () => {
    if (!details.open || inside.childNodes.length) return;
    const found = await attempt("Reading …", () => get(`reviews/places?${new URLSearchParams(query)}`));
    if (!found) return;
    const rest = found.total - found.places.length;
    fill(inside, ...found.places.map((/** @type {any} */ one) => make("li", { dir: "auto" },
      make("a", { href: `#note/${one.document}/${one.start}` }, one.name), ": ",
      one.before.slice(-30).replace(/\s+/g, " "), make("strong", {}, one.text), one.after.slice(0, 30).replace(/\s+/g, " "))),
    rest > 0 && make("li", { class: "dim" }, `and ${countOf(rest, "other")}`));
  });
  return details;
}
