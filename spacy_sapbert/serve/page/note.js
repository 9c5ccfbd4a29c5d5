// A note: its text with the mentions, the candidates of one, and what a person chooses.

import { attempt, get, hasName, post, randomKey, remove, reviewer } from "./api.js";
import { candidatesPanel } from "./candidates.js";
import { nameOf, noteBench } from "./deciding.js";
import { countOf, fill, make, say, sayLater, sureButton } from "./dom.js";
import { commandsOf } from "./keys.js";
import { dispatch, getState, listen, readDecisions } from "./session.js";
import { addDecisions, isUnsaved, newMention, progress } from "./state.js";
import { drawMarks, drawText, findWords, selectedSpan, shownCui } from "./text.js";
import { groupOf, legendOf } from "./words.js";

/** @type {any} */
let view = null;
/** What others chose, by place. @type {any[]} */
let others = [];
/** Marks whose candidates were asked for. @type {Set<string>} */
const asked = new Set();

/** Whether a decision is an answer of this person. @param {any} one */
const isOwn = (one) => one.reviewer === reviewer() && !one.settles;

/** What the commands of a note and of the queue need. */
export const PAGE = {
  getState, dispatch, say,
  reviewer: () => (hasName() ? reviewer() : ""),
  key: randomKey,
  pause: (/** @type {number} */ time) => new Promise((done) => setTimeout(done, time)),
  service: {
    link: async (/** @type {string} */ text) => {
      const { start, end, ...found } = (await post("mentions", { mentions: [text] })).mentions[0];
      return found;
    },
    occurrences: (/** @type {string} */ text, /** @type {any} */ item, /** @type {string} */ who) =>
      readDecisions(`reviews/occurrences?${new URLSearchParams({ text, document: item.document, reviewer: who })}`),
    done: (/** @type {string} */ id, /** @type {string} */ who, /** @type {boolean} */ done) =>
      post(`reviews/documents/${id}/done`, { reviewer: who, done }),
    next: async (/** @type {string} */ who) => {
      const { documents } = await readDecisions(`reviews/documents?reviewer=${encodeURIComponent(who)}`);
      return documents.find((/** @type {any} */ one) => !one.done.includes(who))?.id ?? null;
    },
    queue: (/** @type {string} */ who) => get(`reviews/queue?reviewer=${encodeURIComponent(who)}`),
  },
};

/** Opens a note that the service keeps. @param {string} id @param {number|null} start */
async function open(id, start = null) {
  const path = `reviews/documents/${id}?reviewer=${encodeURIComponent(reviewer())}`;
  const found = await attempt("Reading …", () => readDecisions(path));
  if (!found) return false;
  others = found.decisions.filter((/** @type {any} */ one) => !isOwn(one));
  const own = new Map(found.decisions.filter(isOwn)
    .map((/** @type {any} */ one) => [`${one.start}-${one.end}`, one.chosen]));
  const mentions = found.mentions.map((/** @type {any} */ one) =>
    newMention(one, own.get(`${one.start}-${one.end}`) ?? null));
  const waiting = getState().writes.filter((one) => one.reviewer === reviewer() && !one.settles);
  const { name, text, kb, done } = found;
  const note = addDecisions({ id: found.id, name, text, kb, done, mentions }, waiting);
  const place = note.mentions.findIndex((one) => one.start === start);
  asked.clear();
  dispatch({ type: "opened", note, current: place < 0 ? undefined : place });
  return true;
}

/**
 * Links a text that the service does not keep.
 * @param {string} name
 * @param {string} text
 */
export async function openText(name, text) {
  const answer = await attempt("Linking …", () => post("link", { texts: [text] }));
  if (!answer) return false;
  const [found] = answer.documents;
  if (found.error) { say(found.error.message, true); return false; }
  others = [];
  const mentions = found.entities.map((/** @type {any} */ one) => newMention(one));
  dispatch({ type: "opened", note: { id: null, name, text, kb: answer.kb, done: [], mentions } });
  return true;
}

/** @param {HTMLElement} main @param {any} info @param {string} id @param {number|null} start */
export async function render(main, info, id, start) {
  view = null;
  if (id && !(await open(id, start))) { fill(main, make("p", {}, make("a", { href: "#notes" }, "All notes"))); return; }
  const { note } = getState();
  if (!note) { location.hash = "#notes"; return; }
  const names = make("input", { type: "checkbox", id: "names" });
  names.checked = localStorage.getItem("names") !== "off";
  const blind = make("input", { type: "checkbox", id: "others" });
  const missed = make("input", { id: "missed", type: "text", maxlength: 200, autocomplete: "off" });
  const shown = make("div", { class: "text keys", dir: "auto", role: "group", "aria-label": "Text of the note" });
  const bench = noteBench({
    ...PAGE, draw: drawPanel,
    selected: () => selectedSpan(shown, note.text),
    missed() {
      if (!missed.value.trim()) { missed.focus(); return null; }
      return findMissed();
    },
    focusSearch: () => view.panel.search.focus(),
    go(/** @type {string|null} */ next) {
      const hash = next ? `#note/${next}` : "#notes";
      if (!next) sayLater("All notes are done.");
      if (location.hash === hash) dispatchEvent(new Event("hashchange"));
      else location.hash = hash;
    },
  });
  const findMissed = () => {
    const now = getState().note;
    const span = now && findWords(now, missed.value);
    if (span) missed.value = "";
    return span;
  };
  const mark = (/** @type {any} */ span) => { bench.markSpan(span); focusText(); };
  view = {
    shown, bench, blind,
    progress: make("progress", { "aria-label": "Decided", max: 1, value: 0 }),
    counts: make("span", { id: "counts" }),
    done: make("button", { type: "button", id: "done", onclick: bench.more.done }),
    legend: make("ul", { class: "legend", "aria-label": "Colours" }),
    selection: make("div", { class: "selection", role: "toolbar", "aria-label": "Selected text", hidden: true }),
    panel: candidatesPanel(bench, focusText, info.threshold),
  };
  const setNames = () => {
    localStorage.setItem("names", names.checked ? "on" : "off");
    shown.classList.toggle("named", names.checked);
  };
  names.addEventListener("change", setNames);
  blind.addEventListener("change", drawPanel);
  missed.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape") focusText();
    if (event.key !== "Enter" || event.repeat) return;
    const span = findMissed();
    if (span) mark(span);
    else say("These words are not in the text, or they are marked.");
  });
  const kept = note.id;
  fill(main, make("div", { class: "bench" },
    make("div", { class: "bar" },
      make("a", { href: "#notes", class: "back" }, "All notes"),
      make("h2", { dir: "auto" }, note.name), view.progress, view.counts,
      kept ? view.done : make("span", { class: "dim" }, info.why),
      make("details", { class: "menu" }, make("summary", {}, "More"),
        make("div", {},
          make("label", {}, names, " Names in the text"),
          kept && make("label", {}, blind, " Show what others chose"),
          make("p", {}, ...commandsOf(bench).flatMap((one) => [make("kbd", {}, one.shown), ` ${one.text}  `])),
          make("h3", {}, "Colours"), view.legend, markHelp(),
          kept && info.manages && sureButton("Delete this note for good", "Really delete it, and what was learned from it?",
            () => deleteNote(kept))))),
    make("div", { class: "pane" }, shown, view.selection),
    make("div", { class: "side" }, view.panel.element,
      make("div", { class: "row missed" }, make("label", { for: "missed" }, "Missed words"), missed,
        make("button", { type: "button", id: "mark", onclick: () => { bench.more.mark(); focusText(); } }, "Mark ", make("kbd", {}, "m"))))));
  setNames();
  draw();
  focusText();
}

function markHelp() {
  return make("p", { class: "marks" },
    ...[["mention other sure", "sure"], ["mention other unsure", "not sure"], ["mention other tied", "several fit"],
      ["mention nil none", "no concept"], ["mention other decided", "decided"]]
      .flatMap(([kind, text]) => [make("span", { class: kind, "data-last": true }, text), " "]));
}

/** @param {boolean} whole the mentions are others than before */
function draw(whole = true) {
  const state = getState();
  if (!view || !state.note) return;
  if (whole) {
    drawText(view.shown, state.note, (place) => { dispatch({ type: "selected", place }); focusText(); });
  }
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
    groupOf(one.candidates.find((each) => each.cui === shownCui(one))?.types ?? [])));
  fill(view.legend, ...legendOf(used).map(({ key, name }) =>
    make("li", { class: `mention ${key}` }, name)));
  drawPanel();
}

function drawPanel() {
  if (!view) return;
  const { bench, panel, blind, shown } = view;
  const item = bench.item();
  const said = item && blind.checked ? others
    .filter((one) => one.start === item.mention.start && one.end === item.mention.end)
    .map((one) => make("span", { class: "dim" }, ` ${one.settles ? "agreed" : one.reviewer}: ${nameOf(one.chosen, item.mention)}. `)) : [];
  const offer = bench.offer();
  const places = offer && [offer.here ? `${offer.here} more here` : "",
    offer.elsewhere ? `${offer.elsewhere} in ${countOf(offer.documents, "other note")}` : ""].filter(Boolean).join(", ");
  panel.draw(item, said, offer ? [make("button", {
    type: "button", id: "everywhere", onclick: () => { bench.more.everywhere(); focusText(); },
  }, `“${offer.item.mention.text}” is ${offer.name}: also ${places} `, make("kbd", {}, "e"))] : []);
  const busy = Boolean(bench.busy());
  shown.closest(".bench").setAttribute("aria-busy", String(busy));
}

listen((state, before) => {
  if (!view || !state.note) return;
  for (const one of state.note.mentions) {
    const key = `${one.start}-${one.end}`;
    if (one.pending && !asked.has(key)) { asked.add(key); view.bench.fill(one); }
    if (!one.pending) asked.delete(key);
  }
  const spans = (/** @type {any} */ note) => note?.mentions.map((/** @type {any} */ one) => `${one.start}-${one.end}-${one.chosen === "NO_MENTION"}`).join();
  const whole = state.note !== before.note && spans(state.note) !== spans(before.note);
  const hadFocus = view.shown.contains(document.activeElement);
  draw(whole);
  if (hadFocus) focusText();
  else if (state.current !== before.current || whole) view.shown.querySelector(".current")?.scrollIntoView({ block: "nearest" });
});

function focusText() {
  view?.shown.querySelector(".current[role]")?.focus({ preventScroll: true });
  view?.shown.querySelector(".current")?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("selectionchange", () => {
  if (!view) return;
  const { bench, selection, shown } = view;
  const span = selectedSpan(shown, getState().note?.text ?? "");
  selection.hidden = !span;
  if (!span) return;
  const old = bench.touched(span);
  const act = (/** @type {() => void} */ work) => () => { work(); getSelection()?.removeAllRanges(); focusText(); };
  const keep = (/** @type {Event} */ event) => event.preventDefault();  // the selection
  fill(selection,
    make("button", { type: "button", class: "main", onmousedown: keep, onclick: act(() => bench.markSpan(span)) }, "Mark ", make("kbd", {}, "m")),
    old && make("button", { type: "button", onmousedown: keep, onclick: act(bench.more.change) },
      `Change “${old.text.slice(0, 20)}” to this `, make("kbd", {}, "c")));
  selection.style.top = `${Math.max(4, span.box.top - 44)}px`;
  selection.style.left = `${Math.max(4, Math.min(span.box.left, innerWidth - 320))}px`;
});

/** @param {string} id */
async function deleteNote(id) {
  const found = await attempt("Deleting …", () => remove(`reviews/documents/${id}`));
  if (!found) return;
  const learned = found.versions ? ` ${countOf(found.versions, "version")} that learned from it went too: teach again.` : "";
  sayLater(`Deleted.${learned}`);
  location.hash = "#notes";
}

// What was decided on another machine is there when one comes back to the page.
addEventListener("focus", async () => {
  const { note, writes } = getState();
  if (!view || !note?.id || writes.length) return;
  try {
    const found = await readDecisions(`reviews/documents/${note.id}`);
    const decisions = found.decisions.filter(isOwn);
    if (getState().note?.id === note.id) dispatch({ type: "elsewhere", decisions });
  } catch { /* the next request says so */ }
});

export function leave() {
  view = null;
}

/** Where keys act. */
export const bench = () => view?.bench ?? null;
export { focusText as focus };
export { press } from "./keys.js";
