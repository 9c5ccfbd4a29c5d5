// Places of mentions in notes: the words around them, and links to them.

import { attempt, post } from "./api.js";
import { countOf, fill, make } from "./dom.js";

/** The words of a place with those around it. */
export function around({ before, text, after }) {
  const words = (part) => part.replace(/\s+/g, " ");
  return make("span", { dir: "auto" }, words(before.slice(-40)), make("strong", {}, text), words(after.slice(0, 40)));
}

/** A link to a place in its note. */
export function where({ document, start, name }) {
  return make("a", { href: `#note/${document}/${start}`, title: name }, name);
}

/** A name that opens the places where it was decided. */
export function placesOf(label, query) {
  const inside = make("ul", { class: "found" });
  const details = make("details", {}, make("summary", { dir: "auto" }, label), inside);
  details.addEventListener("toggle", async () => {
    if (!details.open || inside.childNodes.length) return;
    const found = await attempt("Reading …", () => post("reviews/places", query));
    if (!found) return;
    const rest = found.total - found.places.length;
    fill(inside, ...found.places.map((one) => make("li", {}, where(one), ": ", around(one))),
      rest > 0 && make("li", { class: "dim" }, `and ${countOf(rest, "other")}`));
  });
  return details;
}
