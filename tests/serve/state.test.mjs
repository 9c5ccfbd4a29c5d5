// The pure functions of the page's state; run by test_page_state.py with Node.

import assert from "node:assert/strict";
import test from "node:test";
import { pathToFileURL } from "node:url";

const { EMPTY, NIL, NO_MENTION, addWaiting, certainty, cutText, isUnsaved, newMention, nextOpen, progress, shownChoice, trimSpan, update } =
  await import(pathToFileURL(process.env.STATE));

const candidate = (cui, score, more = {}) =>
  ({ cui, name: cui, alias: cui, score, probability: null, types: [], tie: null, ...more });
const sure = (start, end, cui = "C1") =>
  newMention({ start, end, text: "x", cui, candidates: [candidate(cui, 1), candidate("C9", 0.2)] });
const noteOf = (...mentions) => ({ id: "d", name: "note", text: "x".repeat(100), kb: "k", done: [], mentions });
const opened = (...mentions) => update(EMPTY, { type: "opened", note: noteOf(...mentions) });
const decide = (state, chosen, key, reviewer = "Ada") => update(state, { type: "decided", chosen, reviewer, key });
const chosen = (state) => state.note.mentions.map((one) => one.chosen);
const writes = (state) => state.writes.map((one) => [one.start, one.chosen, one.reviewer]);

test("twenty keys decide twenty mentions before anything is written", () => {
  let state = opened(...Array.from({ length: 20 }, (_, at) => sure(2 * at, 2 * at + 1, `C${at + 10}`)));
  for (let at = 0; at < 20; at += 1) {
    const mention = state.note.mentions[state.current];
    state = decide(state, shownChoice(mention), `key-${at}`);
  }
  assert.deepEqual(chosen(state), Array.from({ length: 20 }, (_, at) => `C${at + 10}`));
  assert.equal(state.writes.length, 20);
  assert.equal(new Set(state.writes.map((one) => one.key)).size, 20);
  state = update(state, { type: "written", keys: state.writes.slice(0, 5).map((one) => one.key) });
  assert.equal(state.writes.length, 15);
  assert.equal(isUnsaved(state, state.note.mentions[0]), false);
  assert.equal(isUnsaved(state, state.note.mentions[19]), true);
});

test("Enter means what is shown: none stays none, and doubt needs a choice", () => {
  const none = newMention({ start: 0, end: 1, text: "x", cui: null, note: "below_threshold", candidates: [candidate("C1", 0.4)] });
  assert.equal(certainty(none), "none");
  assert.equal(shownChoice(none), NIL);
  assert.equal(shownChoice(sure(0, 1)), "C1");
  const tied = newMention({ start: 0, end: 1, text: "x", cui: "C1", candidates: [candidate("C1", 1, { tie: "id" }), candidate("C2", 1)] });
  assert.equal(certainty(tied), "tied");
  assert.equal(shownChoice(tied), null);
  assert.equal(shownChoice({ ...tied, chosen: "C2" }), "C2");
  const near = newMention({ start: 0, end: 1, text: "x", cui: "C1", candidates: [candidate("C1", 0.9), candidate("C2", 0.88)] });
  assert.equal(certainty(near), "unsure");
  const likely = newMention({ start: 0, end: 1, text: "x", cui: "C1", candidates: [candidate("C1", 0.7, { probability: 0.9 })] });
  assert.equal(certainty(likely), "sure");
  assert.equal(certainty({ ...likely, candidates: [candidate("C1", 0.7, { probability: 0.4 })] }), "unsure");
});

test("a proposal of a file is sure if the knowledge base agrees", () => {
  const of = (first, second) => certainty(newMention({ start: 0, end: 1, text: "x", cui: "C1", proposed: true,
    candidates: [candidate("C1", first), candidate("C2", second)] }));
  assert.equal(of(0.9, 0.5), "sure");
  assert.equal(of(null, 0.5), "unsure");
  assert.equal(of(0.4, 0.5), "unsure");
});

test("progress counts what is decided and what is unsure", () => {
  let state = opened(sure(0, 1), newMention({ start: 2, end: 3, text: "y", cui: "C1",
    candidates: [candidate("C1", 1, { tie: "id" }), candidate("C2", 1)] }));
  assert.deepEqual(progress(state.note), { total: 2, decided: 0, unsure: 1 });
  state = decide(state, "C1", "a");
  assert.deepEqual(progress(state.note), { total: 2, decided: 1, unsure: 1 });
  assert.equal(state.current, 1);
  assert.equal(nextOpen(state.note.mentions, 1), 1);
  assert.deepEqual(progress(null), { total: 0, decided: 0, unsure: 0 });
});

test("undo is under the name that decided, over notes too", () => {
  let state = opened(sure(0, 1));
  state = decide(state, NIL, "a", "Ada");
  state = update(state, { type: "opened", note: { ...noteOf(sure(0, 1)), id: "other" } });
  state = decide(state, "C1", "b", "Ben");
  state = update(state, { type: "undone", key: "u1" });
  assert.deepEqual(chosen(state), [null]);
  state = update(state, { type: "undone", key: "u2" });
  assert.deepEqual(state.writes.map((one) => [one.document, one.chosen, one.reviewer]),
    [["d", NIL, "Ada"], ["other", "C1", "Ben"], ["other", null, "Ben"], ["d", null, "Ada"]]);
  assert.equal(update(state, { type: "undone", key: "u3" }), state);
});

test("a decision that was changed is undone to the one before", () => {
  let state = decide(opened(sure(0, 1)), "C1", "a");
  state = decide(state, NIL, "b");
  state = update(state, { type: "undone", key: "u" });
  assert.deepEqual(chosen(state), ["C1"]);
  assert.deepEqual(writes(state), [[0, "C1", "Ada"], [0, NIL, "Ada"], [0, "C1", "Ada"]]);
});

test("an own mark is added, decided, and removed when it is not a mention", () => {
  const mark = newMention({ start: 10, end: 12, text: "z", candidates: [] }, null, true);
  let state = update(opened(sure(0, 1)), { type: "marked", mention: mark });
  assert.equal(state.current, 1);
  assert.equal(update(state, { type: "marked", mention: mark }), state);
  const removed = decide(state, NO_MENTION, "a");
  assert.equal(removed.note.mentions.length, 1);
  assert.deepEqual(removed.writes, []);
  state = decide(state, "C5", "b");
  const gone = decide(update(state, { type: "selected", place: 1 }), NO_MENTION, "c");
  assert.deepEqual(writes(gone), [[10, "C5", "Ada"], [10, null, "Ada"]]);
  const back = update(gone, { type: "undone", key: "u" });
  assert.deepEqual(chosen(back), [null, "C5"]);
  assert.deepEqual(writes(back).at(-1), [10, "C5", "Ada"]);
  state = update(update(state, { type: "undone", key: "u" }), { type: "undone", key: "v" });
  assert.equal(state.note.mentions.length, 1);
});

test("a span is changed: the old one is not a mention, and undo brings it back", () => {
  const longer = newMention({ start: 0, end: 4, text: "z" }, null, true);
  let state = update(opened(sure(0, 1)), { type: "moved", mention: longer, reviewer: "Ada", key: "a" });
  assert.deepEqual(state.note.mentions.map((one) => one.end), [4]);
  assert.deepEqual(writes(state), [[0, NO_MENTION, "Ada"]]);
  state = update(state, { type: "undone", key: "u" });
  assert.deepEqual(state.note.mentions.map((one) => one.end), [1]);
  assert.deepEqual(writes(state).at(-1), [0, null, "Ada"]);
});

test("what the service refuses is shown as before", () => {
  let state = decide(opened(sure(0, 1), sure(2, 3)), "C1", "a");
  state = decide(state, "C1", "b");
  state = update(state, { type: "refused", keys: [state.writes[1].key] });
  assert.deepEqual(chosen(state), ["C1", null]);
  assert.equal(state.undo.length, 1);
  assert.equal(state.writes.length, 1);
});

test("what settles a difference is written, and changes no answer", () => {
  const place = { document: "d", name: "note", start: 0, end: 1, label: "", chosen: "C1" };
  let state = decide(opened(sure(0, 1)), "C1", "own");
  state = update(state, { type: "together", places: [place], chosen: "C2", reviewer: "Ada", key: "k", kb: "k", candidates: [], settles: true });
  assert.deepEqual(chosen(state), ["C1"]);
  assert.deepEqual(state.writes.map((one) => [one.chosen, one.settles]), [["C1", false], ["C2", true]]);
  state = update(state, { type: "written", keys: ["own-0"] });
  assert.equal(isUnsaved(state, state.note.mentions[0]), false);
  state = update(state, { type: "undone", key: "u" });
  assert.deepEqual(chosen(state), ["C1"]);
  assert.deepEqual(state.writes.map((one) => [one.chosen, one.settles]), [["C2", true], ["C1", true]]);
});

test("equal mentions of several notes are decided and undone together", () => {
  const places = ["d", "e", "e"].map((document, at) => ({ document, name: document, start: at, end: at + 1, label: "" }));
  let state = update(EMPTY, { type: "together", places, chosen: "C1", reviewer: "Ada", key: "k", kb: "k", candidates: [] });
  assert.deepEqual(state.writes.map((one) => [one.document, one.start, one.chosen]), [["d", 0, "C1"], ["e", 1, "C1"], ["e", 2, "C1"]]);
  assert.equal(state.undo.length, 1);
  state = update(state, { type: "undone", key: "u" });
  assert.deepEqual(state.writes.slice(3).map((one) => one.chosen), [null, null, null]);
  assert.equal(new Set(state.writes.map((one) => one.key)).size, 6);
});

test("what the same person decides in another tab is shown, unless it is newer here", () => {
  let state = decide(opened(sure(0, 1), sure(2, 3)), "C1", "a");
  const decisions = [{ document: "d", start: 0, end: 1, chosen: NIL }, { document: "d", start: 2, end: 3, chosen: NIL },
    { document: "other", start: 0, end: 1, chosen: NIL }];
  state = update(state, { type: "elsewhere", decisions });
  assert.deepEqual(chosen(state), ["C1", NIL]);
});

test("nothing changes a state that is known", () => {
  const freeze = (value) => {
    if (value && typeof value === "object") Object.values(Object.freeze(value)).forEach(freeze);
    return value;
  };
  let state = freeze(opened(sure(0, 1), sure(2, 3)));
  for (const event of [
    { type: "decided", chosen: "C7", candidate: { cui: "C7", name: "n" }, reviewer: "Ada", key: "a" },
    { type: "marked", mention: newMention({ start: 5, end: 6, text: "z" }, null, true) },
    { type: "undone", key: "u" }, { type: "undone", key: "v" }, { type: "selected", place: -1 },
  ]) state = freeze(update(state, freeze(event)));
  assert.deepEqual(chosen(state), [null, null]);
  assert.equal(state.current, 1);
});

test("a text is cut where mentions begin and end", () => {
  const pieces = cutText(10, [{ start: 1, end: 8 }, { start: 3, end: 5 }, { start: 4, end: 9 }]);
  assert.deepEqual(pieces.map((one) => [one.start, one.end, one.inside.join()]), [
    [0, 1, ""], [1, 3, "0"], [3, 4, "0,1"], [4, 5, "0,2,1"], [5, 8, "0,2"], [8, 9, "2"], [9, 10, ""]]);
});

test("blanks around a selection are no part of it", () => {
  const characters = [..." a \u{1f339}\r\n"];
  assert.deepEqual(trimSpan(characters, 0, characters.length), [1, 4]);
  assert.equal(trimSpan(characters, 2, 3), null);
});

test("a note that is opened has the decisions that are not written yet", () => {
  let state = decide(opened(sure(0, 1), sure(2, 3)), "C1", "a");
  state = update(state, { type: "marked", mention: newMention({ start: 5, end: 7, text: "xx", cui: null }, null, true) });
  state = decide(state, "C7", "b");
  const asSaved = noteOf(sure(0, 1), sure(2, 3));
  const shown = addWaiting(asSaved, state.writes, "Ada");
  assert.deepEqual(shown.mentions.map((one) => [one.start, one.chosen]), [[0, "C1"], [2, null], [5, "C7"]]);
  assert.deepEqual(shown.mentions[2].text, "xx");
  assert.deepEqual(addWaiting(asSaved, state.writes, "Ben"), asSaved);
  assert.deepEqual(addWaiting({ ...asSaved, id: "other" }, state.writes, "Ada").mentions, asSaved.mentions);
});
