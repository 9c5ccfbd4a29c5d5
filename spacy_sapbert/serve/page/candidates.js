// The panel of an item: what is proposed, other concepts, and the keys for them.

import { attempt, post } from "./api.js";
import { describeReasons, showConcept } from "./concept.js";
import { fill, make, strength } from "./dom.js";
import { searchField } from "./search.js";
import { NIL, NO_MENTION, isOpen } from "./state.js";
import { explainNote, nameTypes } from "./words.js";

/**
 * What is said of a mention in one sentence.
 * @param {import("./state.js").Mention} mention
 * @param {number|null} threshold
 */
function sentence(mention, threshold) {
  if (mention.chosen === NO_MENTION) return "You said: not a mention.";
  if (mention.chosen === NIL) return "You said: no concept of this vocabulary.";
  if (!isOpen(mention)) return "Decided.";
  if (mention.pending) return "Its candidates are looked up …";
  const [first, second] = mention.candidates;
  const why = explainNote(mention.note, first, threshold);
  if (mention.known === false) return `The file has ${mention.cui}, which this vocabulary does not have.`;
  if (mention.certainty === "none") return `No match in this vocabulary. ${why}`;
  if (mention.certainty === "sure") return mention.proposed ? "Proposed by the file." : "";
  if (mention.certainty === "tied" && second) return `Several concepts fit: it also means ${second.name}.`;
  return why ? `Not sure: ${why}` : "Not sure: choose with 1–9, or 0 for none.";
}

/**
 * @param {import("./keys.js").Bench & {undo: () => void, search: (running: boolean) => void}} bench
 * @param {() => void} leave the search
 * @param {number|null} threshold
 */
export function candidatesPanel(bench, leave, threshold) {
  const about = make("div", { class: "about" });
  const list = make("ol", { class: "candidates" });
  const results = make("ul", { class: "candidates", "aria-label": "Found concepts" });
  const head = make("h2", { dir: "auto" });
  const words = make("p", { class: "words" });
  const more = make("div", { class: "offer", role: "status" });
  const element = make("section", { class: "panel", "aria-label": "Candidates" });
  /** @type {any} */
  let item = null;
  let shown = "";
  const choose = (/** @type {any} */ of, /** @type {string} */ cui, /** @type {any} */ candidate) => {
    bench.choose(of, cui, candidate);
    leave();
  };

  const button = (/** @type {string} */ cui, /** @type {string} */ key, /** @type {string} */ label, /** @type {any} */ candidate, /** @type {any[]} */ ...children) => {
    const of = item;
    return make("button", {
      type: "button", class: "choose", "data-cui": cui, "aria-label": [key, label].filter(Boolean).join(": "),
      "aria-pressed": String(item.mention.chosen === cui), onclick: () => choose(of, cui, candidate),
    }, key ? make("kbd", {}, key) : "", ...children);
  };
  const line = (/** @type {any} */ one, /** @type {string} */ key) => {
    const chance = strength(one, key !== "" && typeof item.mention.candidates[0]?.probability === "number");
    const alias = one.alias && one.alias !== one.name ? one.alias : "";
    const label = [one.name, alias, nameTypes(one.types), chance.textContent].filter(Boolean).join(", ");
    return make("li", {},
      button(one.cui, key, label, one,
        make("span", { class: "name", dir: "auto" }, one.name), chance,
        make("span", { class: "dim alias" }, make("bdi", {}, alias), alias && one.types.length ? " · " : "", nameTypes(one.types))),
      make("button", {
        type: "button", class: "quiet more", "aria-label": `About ${one.name}`, title: `About ${one.name}`,
        onclick: () => showConcept(about, one.cui),
      }, "…"));
  };
  const answer = (/** @type {string} */ cui, /** @type {string} */ key, /** @type {string} */ text) =>
    make("li", { class: "answer" }, button(cui, key, text, undefined, make("span", { class: "name" }, text)));
  const search = searchField({
    id: "search", label: "Other concept", item: () => item, onleave: leave, onsearch: bench.search,
    onfound: (concepts) => {
      list.hidden = concepts !== null;
      fill(results, ...(concepts ?? []).map((one) => line(one, "")), concepts?.length === 0 && make("li", { class: "dim" }, "Nothing found."));
    },
    onchoose: (concept, of) => choose(of, concept.cui, concept),
  });
  const explain = async () => {
    const body = { mention: item.mention.text, label: item.mention.label || null };
    const found = await attempt("Explaining …", () => post("explain", body));
    if (found) fill(about, make("h3", {}, "Why"), describeReasons(found));
  };
  const tools = make("div", { class: "row tools" },
    make("button", { type: "button", onclick: explain }, "Why?"),
    make("button", { type: "button", onclick: bench.undo }, "Undo ", make("kbd", {}, "u")));
  fill(element, head, words, more, search.element, results, list, tools, about);
  element.hidden = true;

  return {
    element,
    search: search.field,
    /** @param {any} next @param {(Node|null)[]} said @param {(Node|string|null)[]} offer */
    draw(next, said = [], offer = []) {
      item = next;
      element.hidden = !item;
      fill(more, ...offer);
      if (!item) return;
      const { mention } = item;
      const now = `${item.document} ${mention.start} ${mention.end} ${mention.text}`;
      if (now !== shown) {
        fill(about);
        search.reset();
      }
      shown = now;
      fill(head, mention.text);
      fill(words, sentence(mention, threshold), ...said);
      fill(list,
        ...mention.candidates.slice(0, 9).map((/** @type {any} */ one, /** @type {number} */ place) => line(one, String(place + 1))),
        answer(NIL, "0", "no concept in this vocabulary"),
        answer(NO_MENTION, "x", "not a mention"));
    },
  };
}
