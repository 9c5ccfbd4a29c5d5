// The text of a note with its mentions, and what is selected in it.

import { nameOf } from "./deciding.js";
import { fill, make } from "./dom.js";
import { NIL, NO_MENTION, contextOf, cutText, isOpen, isReplaced, trimSpan } from "./state.js";
import { groupOf } from "./words.js";

/** The concept that is shown for a mention. @param {import("./state.js").Mention} mention */
const shownCui = (mention) => (isOpen(mention) ? mention.cui : mention.chosen);

const shownName = (mention) => {
  const context = contextOf(mention);
  const name = mention.pending ? "…" : nameOf(shownCui(mention) ?? NIL, mention);
  return `${context && `${context}: `}${name}${mention.remark?.comment || mention.others?.length ? " ✎" : ""}`;
};

function classes(mention) {
  const cui = shownCui(mention);
  const candidate = mention.candidates.find((one) => one.cui === cui);
  const group = cui === null || cui === NIL ? "nil" : groupOf(candidate?.types ?? []);
  if (mention.chosen === NO_MENTION) return "mention none decided";
  return `mention ${contextOf(mention) ? "other" : group} ${isOpen(mention) ? mention.certainty : "decided"}`;
}

function describe(mention, unsaved) {
  const words = { sure: "", unsure: "not sure", tied: "several concepts fit", none: "" };
  const state = isOpen(mention) ? words[mention.certainty] : "decided";
  return [mention.text, shownName(mention), state, unsaved && "not saved"].filter(Boolean).join(", ");
}

/**
 * Draws the text; its elements can be focused by the arrow keys, one by Tab.
 * @param {HTMLElement} element @param {import("./state.js").Note} note @param {(place: number) => void} onselect
 */
export function drawText(element, note, onselect) {
  const characters = [...note.text];
  const named = new Set();
  const visible = note.mentions.map((one, place) => ({ ...one, place })).filter((one) => !isReplaced(note, one));
  const parts = cutText(characters.length, visible).map(({ start, end, inside }) => {
    const text = characters.slice(start, end).join("");
    const place = visible[inside.at(-1) ?? -1]?.place;
    if (place === undefined) return make("span", { "data-start": start }, text);
    const first = !named.has(place);
    named.add(place);
    const last = note.mentions[place].end === end;
    return make("span", {
      "data-start": start, "data-number": place, "data-last": last,
      "data-nested": inside.length > 1, role: first ? "button" : null,
      onclick: () => { if (getSelection()?.isCollapsed !== false) onselect(place); },
    }, text);
  });
  fill(element, ...parts);
}

/** Shows what is decided, without making the elements again. @param {HTMLElement} element @param {import("./state.js").State} state */
export function drawMarks(element, state, unsaved) {
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (element.querySelectorAll("[data-number]"))) {
    const place = Number(part.dataset.number);
    const mention = state.note?.mentions[place];
    if (!mention) continue;
    const waits = unsaved(mention);
    const current = place === state.current;
    part.className = `${classes(mention)}${waits ? " unsaved" : ""}${current ? " current" : ""}`;
    part.dataset.name = shownName(mention);
    if (part.getAttribute("role") !== "button") continue;
    part.tabIndex = current ? 0 : -1;
    part.setAttribute("aria-label", describe(mention, waits));
    part.setAttribute("aria-pressed", String(current));
  }
}

/** The place in the text of a place in its elements. */
function placeOf(element, node, offset, length) {
  if (node === element) {
    const part = element.children[offset];
    return part ? Number(part.dataset.start) : length;
  }
  const holder = node.nodeType === Node.TEXT_NODE ? node.parentElement : node;
  const before = node.nodeType === Node.TEXT_NODE ? node.nodeValue.slice(0, offset) : offset ? holder.textContent : "";
  return Number(holder.dataset.start) + [...before].length;
}

/** The span that is selected in the text, without blanks around it. */
export function selectedSpan(element, text) {
  const selection = getSelection();
  if (!selection || selection.isCollapsed || !selection.rangeCount) return null;
  const range = selection.getRangeAt(0);
  if (!element.contains(range.startContainer) || !element.contains(range.endContainer)) return null;
  const characters = [...text];
  const span = trimSpan(characters,
    placeOf(element, range.startContainer, range.startOffset, characters.length),
    placeOf(element, range.endContainer, range.endOffset, characters.length));
  if (!span) return null;
  const [start, end] = span;
  return { start, end, text: characters.slice(start, end).join("") };
}

/** The next place of some words in a text that is not a mention yet. @param {import("./state.js").Note} note */
export function findWords(note, words) {
  const wanted = words.trim().toLowerCase();
  const characters = [...note.text];
  const { length } = [...wanted];
  for (let start = 0; wanted && start + length <= characters.length; start += 1) {
    const end = start + length;
    const text = characters.slice(start, end).join("");
    if (text.toLowerCase() === wanted && !note.mentions.some((one) => one.start === start && one.end === end)) return { start, end, text };
  }
  return null;
}
