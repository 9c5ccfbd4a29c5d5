// Words for people: types, colours, and why there is no concept.

import { percent } from "./dom.js";

/**
 * `contexts` is what a text can say of a mention; "" = that it is so.
 * @type {{types: {[type: string]: {key: string, name: string}}, groups: {key: string, name: string}[], contexts: string[]}}
 */
export const { types, groups, contexts } = JSON.parse(/** @type {any} */ (document.getElementById("types")).textContent);

/** The class of the colour of types. */
export function groupOf(of) {
  return of.map((type) => types[type]?.key).find(Boolean) ?? "other";
}

/** The names of types. */
export function nameTypes(of) {
  return of.map((type) => types[type]?.name ?? type).join(", ");
}

const NOTES = {
  below_threshold: "The best guess is too weak.",
  ambiguous: "It means several concepts equally.",
  excluded: "What is near differs in a number, a letter, a word or an opposite.",
  dropped: "The term also says family, past, suspected, or a number.",
  filtered: "What fits is not among the allowed concepts.",
  empty: "There is nothing to look up.",
  no_vector: "It has no words that can be looked up.",
  truncated: "Only the beginning of the long text was looked up.",
  reviewed: "A person said so.",
  decided: "People decided that it has no concept.",
  retired: "The id was retired for this concept.",
  broader: "The code is broader than the concept.",
  narrower: "The code is narrower than the concept.",
  related: "The code is only related to the concept.",
};

/** Why a mention has no concept, in words. */
export function explainNote(note, first, threshold) {
  if (!note) return "";
  const text = NOTES[note] ?? note.replaceAll("_", " ");
  const probability = first?.probability;
  const numbers = note === "below_threshold" && probability < threshold
    ? ` (${percent(probability)}, needs ${percent(threshold)})` : "";
  return `${text.replace(/\.$/, "")}${numbers}.`;
}
