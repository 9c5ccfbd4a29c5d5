// A note: its text with the mentions, the candidates of one, and what a person chooses.

import { attempt, hasName, post, randomKey, remove, reviewer } from "./api.js";
import { candidatesPanel } from "./candidates.js";
import { fill, make, say, sureButton } from "./dom.js";
import { dispatch, getState, listen, readDecisions } from "./session.js";
import { NIL, NO_MENTION, addWaiting, certainty, isUnsaved, newMention, progress, shownChoice } from "./state.js";
import { drawMarks, drawText, findWords, selectedSpan } from "./text.js";
import { groupOf, legendOf } from "./words.js";

/** @type {any} */
let view = null;
/** @type {any} */
let info = { threshold: null };
/** What others chose, by place. @type {any[]} */
let others = [];

/** Whether a decision is an answer of this person. @param {any} one */
const isOwn = (one) => one.reviewer === reviewer() && !one.settles;

/**
 * The note of an answer of the service, with the decisions of a person, also those that wait.
 * @param {any} found
 * @returns {import("./state.js").Note}
 */
function readNote(found) {
  const own = new Map(found.decisions.filter(isOwn)
    .map((/** @type {any} */ one) => [`${one.start}-${one.end}`, one.chosen]));
  const mentions = found.mentions.map((/** @type {any} */ one) =>
    newMention(one, own.get(`${one.start}-${one.end}`) ?? null));
  const { id, name, text, kb, done } = found;
  return addWaiting({ id, name, text, kb, done, mentions }, getState().writes, reviewer());
}

/** Opens a note that the service keeps. @param {string} id @param {number|null} start */
export async function open(id, start = null) {
  const path = `/reviews/documents/${id}?reviewer=${encodeURIComponent(reviewer())}`;
  const found = await attempt("Reading …", () => readDecisions(path));
  if (!found) return false;
  others = found.decisions.filter((/** @type {any} */ one) => !isOwn(one));
  const note = readNote(found);
  const place = note.mentions.findIndex((one) => one.start === start);
  dispatch({ type: "opened", note, current: place < 0 ? undefined : place });
  return true;
}

/**
 * Links a text that the service does not keep.
 * @param {string} name
 * @param {string} text
 */
export async function openText(name, text) {
  const answer = await attempt("Linking …", () => post("/link", { texts: [text] }));
  if (!answer) return false;
  const [found] = answer.documents;
  if (found.error) { say(found.error.message, true); return false; }
  others = [];
  const mentions = found.entities.map((/** @type {any} */ one) => newMention(one));
  dispatch({ type: "opened", note: { id: null, name, text, kb: answer.kb, done: [], mentions } });
  return true;
}

/** @param {HTMLElement} main @param {any} about @param {string} id @param {number|null} start */
export async function render(main, about, id, start) {
  info = about;
  view = null;
  if (id && !(await open(id, start))) { fill(main, make("p", {}, make("a", { href: "#notes" }, "All notes"))); return; }
  if (!getState().note) { location.hash = "#notes"; return; }
  const names = make("input", { type: "checkbox", id: "names" });
  names.checked = localStorage.getItem("names") !== "off";
  const blind = make("input", { type: "checkbox", id: "others" });
  view = {
    shown: make("div", { class: "text", dir: "auto", role: "group", "aria-label": "Text of the note" }),
    progress: make("progress", { "aria-label": "Decided", max: 1, value: 0 }),
    counts: make("span", { id: "counts" }),
    done: make("button", { type: "button", id: "done", onclick: toggleDone }),
    legend: make("ul", { class: "legend", "aria-label": "Colours" }),
    selection: make("div", { class: "selection", role: "toolbar", "aria-label": "Selected text", hidden: true }),
    missed: make("input", { id: "missed", type: "text", maxlength: 200, autocomplete: "off" }),
    panel: candidatesPanel({ choose, leave: focusText, undo, threshold: () => info.threshold }),
    blind,
  };
  const setNames = () => {
    localStorage.setItem("names", names.checked ? "on" : "off");
    view.shown.classList.toggle("named", names.checked);
  };
  names.addEventListener("change", setNames);
  blind.addEventListener("change", drawPanel);
  view.missed.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter") markWords();
    if (event.key === "Escape") focusText();
  });
  const { note } = getState();
  const kept = note?.id;
  fill(main, make("div", { class: "bench" },
    make("div", { class: "bar" },
      make("a", { href: "#notes", class: "back" }, "All notes"),
      make("h2", { dir: "auto" }, note?.name ?? ""), view.progress, view.counts,
      kept ? view.done : make("span", { class: "dim" }, info.why),
      make("details", { class: "menu" }, make("summary", {}, "More"),
        make("div", {},
          make("label", {}, names, " Names in the text"),
          kept && make("label", {}, blind, " Show what others chose"),
          make("p", {}, keyHelp()), make("h3", {}, "Colours"), view.legend, markHelp(),
          kept && info.manages && sureButton("Delete this note for good", "Really delete it, and what was learned from it?",
            () => deleteNote(kept))))),
    make("div", { class: "pane" }, view.shown, view.selection),
    make("div", { class: "side" }, view.panel.element,
      make("div", { class: "row missed" }, make("label", { for: "missed" }, "Missed words"), view.missed,
        make("button", { type: "button", id: "mark", onclick: markSelected }, "Mark ", make("kbd", {}, "m"))))));
  setNames();
  draw();
  focusText();
}

function keyHelp() {
  const keys = [["Enter", "what is shown"], ["1–9", "a candidate"], ["0", "no concept"], ["x", "not a mention"],
    ["n p", "next, previous"], ["/", "search"], ["m", "mark"], ["c", "change to the selected text"],
    ["u", "undo"], ["d", "done, next note"]];
  return make("span", {}, ...keys.flatMap(([key, text]) => [make("kbd", {}, key), ` ${text}  `]));
}

function markHelp() {
  return make("p", { class: "marks" },
    ...[["mention other sure", "sure"], ["mention other unsure", "not sure"], ["mention other tied", "several fit"],
      ["mention nil none", "no concept"], ["mention other decided", "decided"]]
      .flatMap(([kind, text]) => [make("span", { class: kind, "data-last": true }, text), " "]));
}

/** @param {boolean} whole the mentions are others than before */
function draw(whole = true) {
  if (!view) return;
  const state = getState();
  if (!state.note) return;
  if (whole) drawText(view.shown, state.note, (place) => select(place));
  drawMarks(view.shown, state, (mention) => isUnsaved(state, mention));
  const { decided, total, unsure } = progress(state.note);
  view.progress.max = total || 1;
  view.progress.value = decided;
  fill(view.counts, total ? `${decided} of ${total} decided${unsure ? `, ${unsure} unsure` : ""}` : "No mentions found");
  const isDone = state.note.done.includes(reviewer());
  fill(view.done, isDone ? "Done ✓" : "Done", " ", make("kbd", {}, "d"));
  view.done.setAttribute("aria-pressed", String(isDone));
  view.done.classList.toggle("main", !isDone && total > 0 && decided === total);
  const used = new Set(state.note.mentions.map((one) =>
    groupOf(one.candidates.find((each) => each.cui === (one.chosen ?? one.cui))?.types ?? [])));
  fill(view.legend, ...legendOf(used).map(({ key, name }) =>
    make("li", { class: `mention ${key}` }, name)));
  drawPanel();
}

function drawPanel() {
  const { note, current } = getState();
  const mention = note?.mentions[current] ?? null;
  const said = mention && view.blind.checked ? others
    .filter((one) => one.start === mention.start && one.end === mention.end)
    .map((one) => make("span", { class: "dim" }, ` ${one.settles ? "agreed" : one.reviewer}: ${nameOf(mention, one.chosen)}. `)) : [];
  view.panel.draw(mention, "", said);
}

/** @param {import("./state.js").Mention} mention @param {string} chosen */
function nameOf(mention, chosen) {
  if (chosen === NIL) return "no concept";
  if (chosen === NO_MENTION) return "not a mention";
  return mention.candidates.find((one) => one.cui === chosen)?.name ?? chosen;
}

listen((state, before) => {
  if (!view || !state.note) return;
  const spans = (/** @type {any} */ note) => note?.mentions.map((/** @type {any} */ one) => `${one.start}-${one.end}`).join();
  const whole = state.note !== before.note && spans(state.note) !== spans(before.note);
  draw(whole);
  if (state.current !== before.current || whole) {
    const part = view.shown.querySelector(".current");
    part?.scrollIntoView({ block: "nearest" });
  }
});

function focusText() {
  view?.shown.querySelector(".current[role]")?.focus({ preventScroll: true });
  view?.shown.querySelector(".current")?.scrollIntoView({ block: "nearest" });
}

/** @param {number} place */
function select(place, focus = true) {
  dispatch({ type: "selected", place });
  if (focus) focusText();
}

/** @param {string} cui @param {any} [candidate] from a search */
function choose(cui, candidate) {
  const { note, current } = getState();
  const mention = note?.mentions[current];
  if (!mention || (note?.id && !hasName())) return;
  say("");
  dispatch({ type: "decided", chosen: cui, candidate, reviewer: reviewer(), key: randomKey() });
  focusText();
}

function accept() {
  const { note, current } = getState();
  const mention = note?.mentions[current];
  if (!mention) return;
  const shown = shownChoice(mention);
  if (shown !== null) { choose(shown); return; }
  const several = certainty(mention) === "tied" ? "Several concepts fit" : "Not sure";
  say(`${several}: press 1–9 for the right one, or 0 for none.`);
}

function undo() {
  const step = getState().undo.at(-1);
  if (!step) { say("Nothing to undo."); return; }
  dispatch({ type: "undone", key: randomKey() });
  say(step.document === getState().note?.id ? "Undone." : `Undone in “${step.name}”.`);
  focusText();
}

/** @param {{start: number, end: number, text: string}} span */
async function linkSpan({ start, end, text }) {
  const answer = await attempt("Linking …", () => post("/mentions", { mentions: [text] }));
  return answer && newMention({ ...answer.mentions[0], start, end, text, label: "" }, null, true);
}

/** @param {{start: number, end: number, text: string}} span */
async function mark(span) {
  const { note } = getState();
  const mention = await linkSpan(span);
  if (!mention || getState().note?.id !== note?.id) return;
  dispatch({ type: "marked", mention });
  getSelection()?.removeAllRanges();
  say("Marked. Choose its concept, or undo.");
  focusText();
}

function selected() {
  return view && getState().note ? selectedSpan(view.shown, getState().note?.text ?? "") : null;
}

function markSelected() {
  const span = selected();
  if (span) mark(span);
  else if (view.missed.value.trim()) markWords();
  else { say("Select words in the text, or write them under “Missed words”."); view.missed.focus(); }
}

function markWords() {
  const { note } = getState();
  const span = note && findWords(note, view.missed.value);
  if (!span) { say("These words are not in the text, or they are marked."); return; }
  view.missed.value = "";
  mark(span);
}

// Another span for the chosen mention.
async function change() {
  const span = selected();
  if (!span) { say("Select the right words in the text first."); return; }
  const { note } = getState();
  if (!note || (note.id && !hasName())) return;
  const touched = note.mentions.findIndex((one) => one.start < span.end && span.start < one.end);
  if (touched >= 0) select(touched, false);
  const { current } = getState();
  const mention = await linkSpan(span);
  if (!mention || getState().note?.id !== note?.id || getState().current !== current) return;
  dispatch({ type: "moved", mention, reviewer: reviewer(), key: randomKey() });
  getSelection()?.removeAllRanges();
  say("Changed. Choose its concept, or undo.");
  focusText();
}

document.addEventListener("selectionchange", () => {
  if (!view) return;
  const span = selected();
  view.selection.hidden = !span;
  if (!span) return;
  const { note } = getState();
  const touched = note?.mentions.findIndex((one) => one.start < span.end && span.start < one.end) ?? -1;
  const keep = (/** @type {Event} */ event) => event.preventDefault();  // the selection
  const old = note?.mentions[touched];
  fill(view.selection,
    make("button", { type: "button", class: "main", onmousedown: keep, onclick: () => mark(span) }, "Mark ", make("kbd", {}, "m")),
    old && make("button", {
      type: "button", onmousedown: keep,
      onclick: change,
    }, `Change “${old.text.slice(0, 20)}” to this `, make("kbd", {}, "c")));
  view.selection.style.top = `${Math.max(4, span.box.top - 44)}px`;
  view.selection.style.left = `${Math.max(4, Math.min(span.box.left, innerWidth - 320))}px`;
});

async function toggleDone() {
  const { note } = getState();
  if (!note?.id || !hasName()) return;
  const done = !note.done.includes(reviewer());
  const body = { reviewer: reviewer(), done };
  if (!(await attempt("Saving …", () => post(`/reviews/documents/${note.id}/done`, body)))) return;
  if (!done) { await open(note.id); return; }
  const path = `/reviews/documents?reviewer=${encodeURIComponent(reviewer())}`;
  const found = await attempt("Reading …", () => readDecisions(path));
  const next = found?.documents.find((/** @type {any} */ one) => !one.done.includes(reviewer()));
  location.hash = next ? `#note/${next.id}` : "#notes";
  if (!next) say("All notes are done.");
}

/** @param {string} id */
async function deleteNote(id) {
  const found = await attempt("Deleting …", () => remove(`/reviews/documents/${id}`));
  if (!found) return;
  location.hash = "#notes";
  const learned = found.versions ? ` ${found.versions} versions that learned from it are removed too: teach again.` : "";
  say(`Deleted.${learned}`);
}

// What was decided on another machine is there when one comes back to the page.
addEventListener("focus", async () => {
  const { note, writes } = getState();
  if (!view || !note?.id || writes.length) return;
  try {
    const found = await readDecisions(`/reviews/documents/${note.id}`);
    const decisions = found.decisions.filter(isOwn);
    if (getState().note?.id === note.id) dispatch({ type: "elsewhere", decisions });
  } catch { /* the next request says so */ }
});

export function leave() {
  view = null;
}

/** @param {KeyboardEvent} event */
export function onkey(event) {
  const state = getState();
  if (!view || !state.note) return;
  const mention = state.note.mentions[state.current];
  const target = /** @type {Element} */ (event.target);
  const inText = target.closest(".text");
  const onButton = target.closest("button, a, input, textarea, select, summary");
  const candidate = /^[1-9]$/.test(event.key) ? mention?.candidates[Number(event.key) - 1] : null;
  /** @type {(() => void)|null} */
  let act = null;
  if (event.key === "n" || (inText && event.key === "ArrowRight")) select(state.current + 1);
  else if (event.key === "p" || (inText && event.key === "ArrowLeft")) select(state.current - 1);
  else if (event.key === "/") view.panel.search.focus();
  else if (event.key === "u") act = undo;
  else if (event.key === "m") act = markSelected;
  else if (event.key === "c" && mention) act = change;
  else if (event.key === "d") act = toggleDone;
  else if (event.key === "0" && mention) act = () => choose(NIL);
  else if (event.key === "x" && mention) act = () => choose(NO_MENTION);
  else if (candidate) act = () => choose(candidate.cui);
  else if (event.key === "Enter" && mention && (inText || !onButton)) act = accept;
  else return;
  event.preventDefault();
  if (act && !event.repeat) act();  // a key that is held decides once
}
