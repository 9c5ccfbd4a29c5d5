// A search for concepts as one types; Enter takes one that alone has what was typed.

import { post } from "./api.js";
import { make, say } from "./dom.js";

const PAUSE = 120;  // milliseconds after the last key

/** The only concept that has a text as its name, id or code, else the only one with its words in a name. */
export function onlyFit(concepts) {
  const [exact, words] = ["exact", "words"].map((match) => concepts.filter((one) => one.match === match));
  const [first, ...others] = exact.length ? exact : words;
  return others.length ? undefined : first;
}

/**
 * @param {{id: string, label: string, value?: string, onfound: (concepts: any[]|null) => void,
 *   item?: () => any, onchoose: (concept: any, item: any) => void, onleave?: () => void,
 *   onsearch?: (running: boolean) => void}} options `onfound` gets null when the field is
 *   empty; `onchoose` gets the item that was on the screen when Enter was pressed
 */
export function searchField({ id, label, value = "", onfound, item = () => null, onchoose, onleave, onsearch }) {
  let asked = 0;
  let timer = 0;
  let choosing = false;
  let left = 0;  // times that the field was left with Escape
  /** What was found; null = it failed. @type {Promise<any[]|null>|null} */
  let running = null;
  const field = make("input", {
    id, type: "search", maxlength: 200, autocomplete: "off", spellcheck: "false", placeholder: "words, id or code", value,
  });
  /** What is asked for is not wanted any more. */
  const stop = () => {
    clearTimeout(timer);
    asked += 1;
    running = null;
  };
  const find = () => {
    stop();
    const own = asked;
    const text = field.value.trim();
    if (!text) { onfound(null); return; }
    running = post("search", { text, k: 9 })
      .then(({ concepts }) => {
        if (own === asked) onfound(concepts);
        return concepts;
      }, (error) => { say(error.message, true); return null; });
  };
  const reset = () => {
    stop();
    field.value = "";
    onfound(null);
  };
  const choose = async () => {
    const shown = item();
    const own = left;
    const wait = (value) => { choosing = field.readOnly = value; onsearch?.(value); };
    if (!running) find();
    wait(true);
    const found = await running;
    wait(false);
    if (!found || own !== left) return;
    const fit = onlyFit(found);
    if (fit) onchoose(fit, shown);
    else if (found.some((one) => one.match !== "near")) say("Several concepts fit: Tab goes to them.");
    else say(found.length ? "No concept has these words. Tab goes to similar ones." : "Nothing found.");
  };
  field.addEventListener("input", () => {
    stop();
    timer = window.setTimeout(find, PAUSE);
  });
  field.addEventListener("keydown", (event) => {
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
  if (value) find();
  return { field, reset, element: make("div", { class: "search" }, make("label", { for: id }, label), field) };
}
