// A search for concepts as one types; Enter takes the first.

import { get } from "./api.js";
import { fill, make, say } from "./dom.js";

const PAUSE = 120;  // milliseconds after the last key

/**
 * @param {{id: string, label: string, onfound: (concepts: any[]|null) => void,
 *   item?: () => any, onchoose: (concept: any, item: any) => void, onleave?: () => void,
 *   onsearch?: (running: boolean) => void}} options `onfound` gets null when the field is
 *   empty; `onchoose` gets the item that was on the screen when Enter was pressed
 */
export function searchField({ id, label, onfound, item = () => null, onchoose, onleave, onsearch }) {
  let asked = 0;
  let timer = 0;
  let choosing = false;
  let left = 0;  // times that the field was left with Escape
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
    running = get(`search?k=9&q=${encodeURIComponent(text)}`)
      .then(({ concepts }) => {
        if (own === asked) onfound(concepts);
        return concepts;
      }, (error) => { say(error.message, true); return []; });
  };
  const reset = () => {
    clearTimeout(timer);
    asked += 1;
    running = null;
    field.value = "";
    onfound(null);
  };
  const choose = async () => {
    const shown = item();
    const own = left;
    const wait = (/** @type {boolean} */ value) => { choosing = field.readOnly = value; onsearch?.(value); };
    if (!running) find();
    wait(true);
    const [first] = (await running) ?? [];
    wait(false);
    if (first && own === left) onchoose(first, shown);
  };
  field.addEventListener("input", () => {
    running = null;
    asked += 1;
    clearTimeout(timer);
    timer = window.setTimeout(find, PAUSE);
  });
  field.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      if (!event.repeat && !choosing) choose();
    }
    if (event.key === "Escape") {
      reset();
      left += 1;
      onleave?.();
    }
  });
  return { field, reset, element: make("div", { class: "search" }, make("label", { for: id }, label), field) };
}

/**
 * A button that opens a search for one item, whose results are buttons.
 * @param {string} name what is searched for
 * @param {string} id
 * @param {(concept: any) => void} onchoose
 */
export function searchButton(name, id, onchoose) {
  const results = make("span", {});
  const { element, field } = searchField({
    id, label: "Other", onchoose,
    onfound: (concepts) => fill(results, ...(concepts ?? []).map((each) => make("button", {
      type: "button", class: "chip", "data-cui": each.cui, onclick: () => onchoose(each),
    }, each.name))),
  });
  const button = make("button", {
    type: "button", class: "quiet", "aria-label": `Search a concept for ${name}`,
    onclick: () => { button.replaceWith(element, results); field.focus(); },
  }, "search …");
  return button;
}
