// The panel of a mention: what is proposed, other concepts, and the keys for them.

import { attempt, post } from "./api.js";
import { describeReasons, showConcept } from "./concept.js";
import { fill, make, strength } from "./dom.js";
import { drawFound, searchField } from "./search.js";
import { NIL, NO_MENTION, certainty } from "./state.js";
import { explainNote, nameTypes } from "./words.js";

/**
 * What is said of a mention in one sentence.
 * @param {import("./state.js").Mention} mention
 * @param {number|null} threshold
 */
function sentence(mention, threshold) {
  if (mention.chosen === NO_MENTION) return "You said: not a mention.";
  if (mention.chosen === NIL) return "You said: no concept of this vocabulary.";
  if (mention.chosen !== null) return "Decided.";
  const [first, second] = mention.candidates;
  const trust = certainty(mention);
  if (trust === "none") {
    const why = explainNote(mention.note, first, threshold);
    return `No match in this vocabulary. ${why}`;
  }
  if (trust === "sure") return mention.proposed ? "Proposed by the file." : "";
  if (mention.note) return `Not sure: ${explainNote(mention.note, first, threshold)}`;
  if (trust === "tied" && second) return `Not sure: “${mention.text}” also means ${second.name}.`;
  return "Not sure: choose with 1–9, or 0 for none.";
}

/**
 * @param {{choose: (cui: string, candidate?: any) => void, leave: () => void,
 *   undo: () => void, threshold: () => number|null}} actions
 */
export function candidatesPanel({ choose, leave, undo, threshold }) {
  const about = make("div", { class: "about" });
  const list = make("ol", { class: "candidates" });
  const results = make("ul", { class: "candidates", "aria-label": "Found concepts" });
  const head = make("h2", { dir: "auto" });
  const words = make("p", { class: "words" });
  const element = make("section", { class: "panel", "aria-label": "Candidates" });
  /** @type {import("./state.js").Mention|null} */
  let mention = null;

  const line = (/** @type {any} */ one, /** @type {string} */ key) => make("li", {},
    make("button", {
      type: "button", class: "choose", "data-cui": one.cui,
      "aria-pressed": String(mention?.chosen === one.cui),
      "aria-label": [one.name, one.alias !== one.name ? one.alias : "", nameTypes(one.types)]
        .filter(Boolean).join(", "),
      onclick: () => choose(one.cui, one),
    }, key ? make("kbd", {}, key) : "",
      make("span", { class: "name", dir: "auto" }, one.name),
      make("span", { class: "dim alias", dir: "auto" }, one.alias && one.alias !== one.name ? one.alias : ""),
      make("span", { class: "dim types" }, nameTypes(one.types)),
      strength(one, key !== "" && typeof mention?.candidates[0]?.probability === "number")),
    make("button", {
      type: "button", class: "quiet more", "aria-label": `About ${one.name}`, title: `About ${one.name}`,
      onclick: () => showConcept(about, one.cui),
    }, "…"));
  const answer = (/** @type {string} */ cui, /** @type {string} */ key, /** @type {string} */ text) => make("li", {},
    make("button", {
      type: "button", class: "choose", "data-cui": cui,
      "aria-pressed": String(mention?.chosen === cui), onclick: () => choose(cui),
    }, make("kbd", {}, key), make("span", { class: "name" }, text)));
  const search = searchField({
    id: "search", label: "Other concept",
    onfound: (concepts) => {
      list.hidden = concepts !== null;
      fill(results, ...(concepts ? drawFound(concepts, line) : []));
    },
    onchoose: (concept) => choose(concept.cui, concept),
    onleave: leave,
  });
  const explain = async () => {
    if (!mention) return;
    const body = { mention: mention.text, label: mention.label || null };
    const found = await attempt("Explaining …", () => post("/explain", body));
    if (found) fill(about, make("h3", {}, "Why"), describeReasons(found));
  };
  const tools = make("div", { class: "row tools" },
    make("button", { type: "button", onclick: explain }, "Why?"),
    make("button", { type: "button", onclick: undo }, "Undo ", make("kbd", {}, "u")));
  fill(element, head, words, search.element, results, list, tools, about);
  element.hidden = true;

  return {
    element,
    search: search.field,
    /** @param {import("./state.js").Mention|null} next @param {string} title @param {(Node|null)[]} more */
    draw(next, title = "", more = []) {
      const changed = next?.start !== mention?.start || next?.text !== mention?.text;
      mention = next;
      element.hidden = !mention;
      if (!mention) return;
      if (changed) {
        fill(about);
        fill(results);
        list.hidden = false;
        search.field.value = "";
      }
      fill(head, title || mention.text);
      fill(words, sentence(mention, threshold()), ...more);
      fill(list,
        ...mention.candidates.slice(0, 9).map((one, place) => line(one, String(place + 1))),
        answer(NIL, "0", "no concept in this vocabulary"),
        answer(NO_MENTION, "x", "not a mention"));
    },
  };
}
