// A search for concepts as one types; Enter takes the first.

import { get } from "./api.js";
import { fill, make, say } from "./dom.js";

const PAUSE = 120;  // milliseconds after the last key

/**
 * @param {{id: string, label: string, onfound: (concepts: any[]|null) => void,
 *   onchoose: (concept: any) => void, onleave?: () => void}} options `onfound` gets null
 *   when the field is empty
 */
export function searchField({ id, label, onfound, onchoose, onleave }) {
  let asked = 0;
  let timer = 0;
  /** @type {Promise<any[]>|null} */
  let running = null;
  const field = make("input", {
    id, type: "search", maxlength: 200, autocomplete: "off", spellcheck: "false",
    placeholder: "words, id or code",
  });
  const find = () => {
    clearTimeout(timer);
    const own = asked += 1;
    const text = field.value.trim();
    if (!text) { running = null; onfound(null); return; }
    running = get(`/search?k=9&q=${encodeURIComponent(text)}`)
      .then(({ concepts }) => {
        if (own === asked) onfound(concepts);
        return concepts;
      }, (error) => { say(error.message, true); return []; });
  };
  field.addEventListener("input", () => {
    running = null;
    clearTimeout(timer);
    timer = window.setTimeout(find, PAUSE);
  });
  field.addEventListener("keydown", async (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      if (!running) find();
      const [first] = (await running) ?? [];
      if (first) onchoose(first);
    }
    if (event.key === "Escape") {
      field.value = "";
      onfound(null);
      onleave?.();
    }
  });
  return { field, element: make("div", { class: "search" }, make("label", { for: id }, label), field) };
}

/**
 * A list of concepts, one line each.
 * @param {any[]} concepts
 * @param {(concept: any, key: string) => Node} line
 */
export function drawFound(concepts, line) {
  return concepts.length
    ? concepts.map((one) => line(one, ""))
    : [fill(make("li", { class: "dim" }), "Nothing found.")];
}
