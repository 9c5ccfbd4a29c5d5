// A note: its text with the mentions, the candidates of one, and what a person chooses.

import { attempt, get, post, reviewer } from "./api.js";
import { PAGE, listKeys, menu, workbench } from "./bench.js";
import { noteBench } from "./deciding.js";
import { countOf, fill, later, make, say, select } from "./dom.js";
import { dispatch, getState, listen, readDecisions } from "./session.js";
import { NO_MENTION, REMARKS, addDecisions, contextOf, isOpen, isUnsaved, newMention, overlaps, progress } from "./state.js";
import { drawMarks, drawText, findWords, selectedSpan } from "./text.js";
import { contexts, groups } from "./words.js";

/** What is shown; null = another part of the page. @type {any} */
let view = null;

const placeOf = (one) => `${one.start}-${one.end}`;

/** Opens a note that the service keeps. @param {string} id @param {number|null} start */
async function open(id, start) {
  const path = `reviews/documents/${id}?reviewer=${encodeURIComponent(reviewer())}`;
  const found = await attempt("Reading …", () => readDecisions(() => get(path)));
  if (!found) return false;
  const isOwn = (one) => one.reviewer === reviewer() && !one.settles;
  const concepts = new Map(found.concepts.map((one) => [one.cui, one]));
  const decisions = found.decisions.map((one) => ({ ...one, concept: concepts.get(one.chosen) }));
  const { name, text, kb, done, filter } = found;
  const note = addDecisions({ id: found.id, name, text, kb, done, filter, mentions: found.mentions.map((one) => newMention(one)) },
    [...decisions, ...getState().writes].filter(isOwn));
  for (const one of [...found.remarks, ...getState().writes.filter((one) => one.to === REMARKS && one.document === id)]) {
    const mention = note.mentions.find((each) => placeOf(each) === placeOf(one));
    if (mention && one.reviewer === reviewer()) mention.remark = one;
    else if (mention && (one.comment || one.asks)) mention.others = [...mention.others ?? [], one];
  }
  const place = note.mentions.findIndex((one) => one.start === start);
  dispatch({ type: "opened", note, current: place < 0 ? undefined : place });
  return true;
}

/** Links a text that the service does not keep. */
export async function openText(name, text) {
  const answer = await attempt("Linking …", () => post("link", { texts: [text] }));
  if (!answer) return false;
  const [found] = answer.documents;
  if (found.error) { say(found.error.message, true); return false; }
  const mentions = found.entities.map((one) => newMention(one));
  dispatch({ type: "opened", note: { id: null, name, text, kb: answer.kb, done: [], mentions } });
  return true;
}

/** @param {HTMLElement} main @param {any} info @param {string} id @param {number|null} start @returns {Promise<any>} */
export async function render(main, info, id, start) {
  view = null;
  if (id && !(await open(id, start))) { fill(main, make("p", {}, make("a", { href: "#notes" }, "All notes"))); return null; }
  const { note } = getState();
  if (!note) { location.hash = "#notes"; return null; }
  const missed = make("input", { id: "missed", type: "text", maxlength: 200, autocomplete: "off" });
  const shown = make("div", { class: "text keys", dir: "auto", role: "group", "aria-label": "Text of the note" });
  const bench = noteBench({
    ...PAGE, draw: drawPanel,
    selected: () => selectedSpan(shown, note.text),
    missed() {
      const span = findWords(getState().note ?? note, missed.value);
      if (span) missed.value = "";
      else missed.focus();
      return span;
    },
    focusSearch: () => view.panel.search.focus(),
    focusComment() {
      remark.element.open = true;
      comment.focus();
    },
    go(next) {
      const hash = next ? `#note/${next}` : "#notes";
      if (!next) later.text = "All notes are done.";
      if (location.hash === hash) dispatchEvent(new Event("hashchange"));
      else location.hash = hash;
    },
  });
  missed.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.repeat) bench.more.mark();
    if (event.key === "Escape" || (event.key === "Enter" && !missed.value)) focusText();
  });
  /** What was on the screen when the field got the focus. @type {any} */
  let commented = null;
  const comment = make("input", {
    id: "comment", maxlength: 2000, autocomplete: "off",
    onfocus: () => { commented = bench.item(); },
    onchange: () => bench.remark(commented, { comment: comment.value.trim() }),
  });
  comment.addEventListener("keydown", (event) => { if (["Enter", "Escape"].includes(event.key)) focusText(); });
  const asks = make("input", { type: "checkbox", id: "asks", onchange: () => bench.remark(bench.item(), { asks: asks.checked }) });
  const said = select("context", "The text says", contexts.map((one) => [one, one || "it is so"]), "", (value) => bench.remark(bench.item(), { context: value }));
  const others = make("div", { class: "dim", dir: "auto" });
  /** @type {any} */
  const remark = { comment, asks, said: /** @type {any} */ (said.querySelector("select")), others,
    summary: make("summary"), shown: "" };
  remark.element = make("details", { class: "remark" }, remark.summary,
    make("div", { class: "row" }, said, make("label", {}, "Comment ", comment), make("label", {}, asks, " Ask a colleague"), others));
  const marks = make("input", { type: "checkbox", id: "marks", onchange: () => localStorage.setItem("marks", marks.checked ? "on" : "off") });
  marks.checked = localStorage.getItem("marks") === "on";
  shown.addEventListener("pointerup", () => setTimeout(() => {
    const span = marks.checked && selectedSpan(shown, note.text);
    if (!span || getState().note?.mentions.some((one) => one.chosen !== NO_MENTION && overlaps(one, span))) return;
    bench.more.mark();
    getSelection()?.removeAllRanges();
  }));
  /** A button that does what a key does, and leaves the selection until then. */
  const button = (id, key, name) => make("button", {
    type: "button", id, onmousedown: (event) => event.preventDefault(), onclick: () => bench.more[id](),
  }, name, " ", make("kbd", {}, key));
  const parts = {
    shown, remark,
    counts: make("span", { id: "counts" }),
    sure: button("sure", "a", "Accept sure"),
    done: make("button", { type: "button", id: "done", onclick: bench.more.done }),
  };
  view = { ...parts, leave() { view = null; }, ...workbench(main, bench, {
    bar: [make("a", { href: "#notes", class: "back" }, "All notes"), make("h2", { dir: "auto" }, note.name),
      parts.counts, Object.keys(note.filter ?? {}).length > 0 && make("span", { class: "dim", title: JSON.stringify(note.filter) }, "a part of the vocabulary"),
      parts.sure, note.id ? parts.done : make("span", { class: "dim" }, info.why),
      menu("Keys", listKeys(bench), make("label", {}, marks, " Words that I select are marked"), make("h3", {}, "Colours"), colours())],
    pane: [shown],
    side: [remark.element, make("div", { class: "row missed" }, make("label", {}, "Missed words ", missed),
      button("mark", "m", "Mark"), button("change", "c", "Change"))],
    focus: focusText, threshold: info.threshold,
  }) };
  draw();
  focusText();
  return view;
}

/** How mentions look: by the group of their types, and by what is known of them. */
function colours() {
  return make("p", { class: "marks" },
    ...[...groups.map(({ key, name }) => [key, name]), ["other unsure", "not sure"], ["other tied", "several fit"],
      ["nil none", "no concept"], ["other decided", "decided"]]
      .flatMap(([kind, text]) => [make("span", { class: `mention ${kind}`, "data-last": true }, text), " "]));
}

/** @param {boolean} whole the mentions are others than before */
function draw(whole = true) {
  const state = getState();
  if (!view || !state.note) return;
  if (whole) {
    drawText(view.shown, state.note, (place) => { dispatch({ type: "selected", place }); focusText(); });
  }
  drawMarks(view.shown, state, (mention) => isUnsaved(state, mention));
  const { mentions, done } = state.note;
  const { decided, total, unsure } = progress(state.note);
  fill(view.counts, total ? `${decided} of ${total} decided${unsure ? `, ${unsure} unsure` : ""}` : "No mentions found");
  view.sure.hidden = !mentions.some((one) => isOpen(one) && one.certainty === "sure");
  const isDone = done.includes(reviewer());
  fill(view.done, isDone ? "Done ✓" : "Done", " ", make("kbd", {}, "d"));
  view.done.setAttribute("aria-pressed", String(isDone));
  view.done.classList.toggle("main", !isDone && total > 0 && decided === total);
  drawPanel();
}

function drawPanel() {
  if (!view) return;
  const { bench, panel, element, remark } = view;
  const { mention } = bench.item() ?? {};
  remark.element.hidden = !mention;
  if (mention) {
    const { comment = "", asks = false } = mention.remark ?? {};
    const others = mention.others ?? [];
    const known = [contextOf(mention), comment && "a comment", asks && "a question", others.length && `${others.length} of colleagues`].filter(Boolean);
    fill(remark.summary, known.join(", ") || "Negated, past …, a comment", " ", make("kbd", {}, "t"), " ", make("kbd", {}, "k"));
    const now = `${bench.item().document} ${placeOf(mention)}`;
    if (now !== remark.shown) remark.element.open = Boolean(comment || asks || others.length);
    remark.shown = now;
    remark.said.value = contextOf(mention);
    if (document.activeElement !== remark.comment) remark.comment.value = comment;
    remark.asks.checked = asks;
    fill(remark.others, ...others.map((one) => make("div", {}, `${one.reviewer}${one.asks ? " asks" : ""}: ${one.comment}`)));
  }
  const offer = bench.offer();
  const elsewhere = (offer?.places ?? []).filter((one) => one.document !== getState().note?.id);
  const here = offer && offer.places.length - elsewhere.length;
  const places = [here ? `${here} more here` : "",
    elsewhere.length ? `${elsewhere.length} in ${countOf(new Set(elsewhere.map((one) => one.document)).size, "other note")}` : ""];
  panel.draw(bench.item(), offer ? [make("button", {
    type: "button", id: "everywhere", onclick: () => { bench.more.everywhere(); focusText(); },
  }, `“${offer.item.mention.text}” is ${offer.name}: also ${places.filter(Boolean).join(", ")} `, make("kbd", {}, "e"))] : []);
  element.setAttribute("aria-busy", String(Boolean(bench.busy())));
}

listen((state, before) => {
  if (!view || !state.note) return;
  view.bench.fill();
  const spans = (note) => note?.mentions.map((one) => `${placeOf(one)}-${one.chosen === "NO_MENTION"}`).join();
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
