// Queue: open mentions of all notes, equal ones together, the most uncertain first.

import { attempt, get, hasName, randomKey, reviewer } from "./api.js";
import { candidatesPanel } from "./candidates.js";
import { countOf, fill, make, say } from "./dom.js";
import { prepare } from "./notes.js";
import { dispatch, flush, getState } from "./session.js";
import { NIL, NO_MENTION, newMention, shownChoice } from "./state.js";

const LONGEST_WAIT = 3000;  // milliseconds for decisions that are not written yet
/** @type {any} */
let view = null;

/** @param {HTMLElement} main @param {any} info */
export async function render(main, info) {
  view = null;
  fill(main, make("h2", {}, "Queue"));
  if (info.why) { main.append(make("p", {}, info.why)); return; }
  if (!hasName()) { main.append(make("p", {}, "The queue has what you have not decided yet. Write your name at the top.")); return; }
  await prepare();
  await load(main, info);
}

/** @param {HTMLElement} main @param {any} info */
async function load(main, info) {
  // What is on its way is not open any more.
  await Promise.race([flush(), new Promise((done) => setTimeout(done, LONGEST_WAIT))]);
  const path = `/reviews/queue?reviewer=${encodeURIComponent(reviewer())}`;
  const found = await attempt("Reading …", () => get(path));
  if (!found) return;
  if (!found.first.length) { fill(main, make("h2", {}, "Queue"), make("p", {}, "Nothing is open. ", make("a", { href: "#notes" }, "All notes"))); return; }
  const panel = candidatesPanel({ choose, leave: () => view.places.focus(), undo, threshold: () => info.threshold });
  view = {
    main, info, panel, kb: found.kb, groups: found.first, current: 0, decided: [], left: found.mentions, rest: found.groups,
    places: make("div", { class: "places", tabindex: 0, role: "group", "aria-label": "Places" }),
    counts: make("span", { id: "counts" }),
  };
  fill(main, make("div", { class: "bench" },
    make("div", { class: "bar" }, make("h2", {}, "Queue"), view.counts,
      make("span", { class: "dim" }, "One key decides all that are ticked.")),
    make("div", { class: "pane" }, view.places),
    make("div", { class: "side" }, panel.element)));
  draw();
}

function draw() {
  const group = view.groups[view.current];
  fill(view.counts, `${countOf(view.left, "mention")} open, ${countOf(view.rest, "name")}`);
  if (!group) { load(view.main, view.info); return; }
  const boxes = group.places.map((/** @type {any} */ place) => {
    const box = make("input", { type: "checkbox" });
    box.checked = place.taken ?? true;
    box.addEventListener("change", () => { place.taken = box.checked; title(); });
    return make("li", {}, make("label", { dir: "auto" }, box, make("span", {},
      place.before.replace(/\s+/g, " "), make("strong", {}, place.text), place.after.replace(/\s+/g, " "))),
      make("a", { href: `#note/${place.document}/${place.start}`, class: "dim" }, place.name));
  });
  fill(view.places, make("h3", {}), make("ul", {}, ...boxes));
  view.mention = newMention(group.mention);
  title();
  view.places.focus({ preventScroll: true });
}

function title() {
  const group = view.groups[view.current];
  const taken = group.places.filter((/** @type {any} */ one) => one.taken !== false).length;
  const times = group.places.length === 1 ? `once, in “${group.places[0].name}”`
    : `${group.places.length} times in ${countOf(group.documents, "note")}`;
  fill(view.places.firstChild, `“${group.mention.text}”, ${times}${taken < group.places.length ? `; ${taken} ticked` : ""}`);
  view.panel.draw(view.mention, group.mention.text);
}

/** @param {string} chosen @param {any} [candidate] */
function choose(chosen, candidate) {
  const group = view.groups[view.current];
  if (!group || !hasName()) return;
  const places = group.places.filter((/** @type {any} */ one) => one.taken !== false);
  if (!places.length) { say("Tick a place first."); return; }
  dispatch({ type: "together", places, chosen, reviewer: reviewer(), key: randomKey(), kb: view.kb,
    candidates: group.mention.candidates });
  const others = group.places.filter((/** @type {any} */ one) => one.taken === false);
  view.decided.push({ place: view.current, group, others });
  view.left -= places.length;
  if (others.length) {
    const rest = { ...group, places: others.map((/** @type {any} */ one) => ({ ...one, taken: true })) };
    view.groups = view.groups.map((/** @type {any} */ one) => (one === group ? rest : one));
  } else {
    view.current += 1;
    view.rest -= 1;
  }
  const name = chosen === NIL ? "no concept" : chosen === NO_MENTION ? "not a mention"
    : (candidate ?? group.mention.candidates.find((/** @type {any} */ one) => one.cui === chosen))?.name ?? chosen;
  say(`${countOf(places.length, "decision")}: “${group.mention.text}” is ${name}.`);
  draw();
}

function undo() {
  const last = view.decided.pop();
  if (!last || !getState().undo.length) { say("Nothing to undo."); return; }
  dispatch({ type: "undone", key: randomKey() });
  view.left += last.group.places.length - last.others.length;
  if (!last.others.length) view.rest += 1;
  view.groups = view.groups.map((/** @type {any} */ one, /** @type {number} */ place) => (place === last.place ? last.group : one));
  view.current = last.place;
  say("Undone.");
  draw();
}

export function leave() {
  view = null;
}

/** @param {KeyboardEvent} event */
export function onkey(event) {
  if (!view) return;
  const group = view.groups[view.current];
  if (!group) return;
  const target = /** @type {Element} */ (event.target);
  const onButton = target.closest("button, a, input, textarea, select, summary");
  const candidate = /^[1-9]$/.test(event.key) ? group.mention.candidates[Number(event.key) - 1] : null;
  /** @type {(() => void)|null} */
  let act = null;
  if (event.key === "/") view.panel.search.focus();
  else if (event.key === "u") act = undo;
  else if (event.key === "0") act = () => choose(NIL);
  else if (event.key === "x") act = () => choose(NO_MENTION);
  else if (event.key === "n" && view.current + 1 < view.groups.length) { view.current += 1; draw(); }
  else if (event.key === "p" && view.current > 0) { view.current -= 1; draw(); }
  else if (candidate) act = () => choose(candidate.cui);
  else if (event.key === "Enter" && !onButton) {
    const shown = shownChoice(view.mention);
    act = shown === null ? () => say("Not sure: press 1–9 for the right one, or 0 for none.") : () => choose(shown);
  } else return;
  event.preventDefault();
  if (act && !event.repeat) act();
}
