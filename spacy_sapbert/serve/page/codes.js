// The id of a concept beside its name, and its codes in the vocabulary that is chosen.

import { attempt, post } from "./api.js";
import { fill, make, select } from "./dom.js";

const AT_ONCE = 1000;  // concepts of a request
const SHOWN = 3;  // codes of a concept
const KEPT = "codes";  // the vocabulary that was chosen last

/** The codes of concepts, by vocabulary. @type {Map<string, {[source: string]: string[]}>} */
const known = new Map();
/** @type {Set<string>} */
let waiting = new Set();
let digest = "";
let chosen = "";

/** Offers the vocabularies that have codes. @param {{digest: string, codes: string[]}} info */
export function offerCodes(info) {
  if (info.digest === digest) return;
  digest = info.digest;
  known.clear();
  const kept = localStorage.getItem(KEPT) ?? info.codes[0] ?? "";
  chosen = info.codes.includes(kept) ? kept : "";
  const place = /** @type {HTMLElement} */ (document.getElementById("codes"));
  place.hidden = !info.codes.length;
  fill(place, select("of-codes", "Codes", [...info.codes.map((one) => [one, one]), ["", "none"]], chosen, (value) => {
    chosen = value;
    localStorage.setItem(KEPT, value);
    drawCodes();
  }));
}

/** The id and the codes of a concept; what is not known yet is asked for. @param {string} cui */
export function codeOf(cui) {
  const element = make("span", { class: "code", "data-cui": cui });
  draw(element);
  if (!known.has(cui)) {
    if (!waiting.size) setTimeout(ask);
    waiting.add(cui);
  }
  return element;
}

function draw(element) {
  const { cui } = element.dataset;
  const codes = (known.get(cui)?.[chosen] ?? []).filter((one) => one !== cui);
  const more = codes.length > SHOWN ? " …" : "";
  element.textContent = codes.length ? `${cui} · ${codes.slice(0, SHOWN).join(", ")}${more}` : cui;
  element.title = codes.length ? `${chosen}: ${codes.join(", ")}` : "";
}

const drawCodes = () => document.querySelectorAll(".code").forEach(draw);

/** Asks for all that wait, together. */
async function ask() {
  const [own, cuis] = [digest, [...waiting]];
  waiting = new Set();
  for (let at = 0; at < cuis.length; at += AT_ONCE) {
    const part = cuis.slice(at, at + AT_ONCE);
    const answer = await attempt("", () => post("codes", { cuis: part }));
    if (!answer || own !== digest) return;
    for (const cui of part) known.set(cui, answer.codes[cui] ?? {});
  }
  drawCodes();
}
