// The pure parts of the page: its state, and what keys do; run by test_page.py with Node.

import assert from "node:assert/strict";
import test from "node:test";
import { pathToFileURL } from "node:url";

// What the field of the search needs of a browser; the person who acts gives time and network.
let acting = null;
class Field extends EventTarget {
  value = "";
  readOnly = false;
  children = [];
  replaceChildren(...children) { this.children = children; }
  setAttribute() {}
}
globalThis.document = { createElement: () => new Field(), getElementById: (id) => (id === "answers" ? { textContent: "{}" } : null) };
globalThis.sessionStorage = { getItem: () => null };
globalThis.window = { setTimeout: (work, time) => acting.later(work, time) };
const { clearTimeout: clearReal } = globalThis;
globalThis.clearTimeout = (timer) => { if (timer?.stop) timer.stop(); else clearReal(timer); };
globalThis.fetch = (path, { body }) => acting.answer(() => ({ ok: true, status: 200, json: async () => ({ concepts: [candidate(`found for ${JSON.parse(body).text}`, null, { match: "exact" })] }) }));

const load = (name) => import(pathToFileURL(`${process.env.PAGE}/${name}`));
const { EMPTY, NIL, NO_MENTION, OPEN, addDecisions, changeOf, cutText, isReplaced, isUnsaved, newMention, progress, shownChoice, trimSpan, update } =
  await load("state.js");
const { COMMANDS, press } = await load("keys.js");
const { nameOf, noteBench, queueBench } = await load("deciding.js");
const { onlyFit, searchField } = await load("search.js");

const candidate = (cui, score, more = {}) =>
  ({ cui, name: cui, alias: cui, score, probability: null, types: [], tie: null, ...more });
const sure = (start, end, cui = "C1") =>
  newMention({ start, end, text: "x", cui, certainty: "sure", candidates: [candidate(cui, 1), candidate("C9", 0.2)] });
const tied = (start, end) => newMention({ start, end, text: "y", cui: "C1", certainty: "tied", candidates: [candidate("C1", 1), candidate("C2", 1)] });
const noteOf = (...mentions) => ({ id: "d", name: "note", text: "x".repeat(100), kb: "k", done: [], mentions });
const opened = (...mentions) => update(EMPTY, { type: "opened", note: noteOf(...mentions) });
const about = (reviewer = "Ada") => ({ reviewer, kb: "k" });
const change = (state, changes, key, more = {}) => update(state, { type: "changed", changes, about: about(), key, ...more });
const decide = (state, chosen, key, reviewer = "Ada") => {
  const { note, current } = state;
  const item = { document: note.id, name: note.name, mention: note.mentions[current] };
  return change(state, [changeOf(item, chosen)], key, { about: about(reviewer) });
};
const mark = (state, start, end, key) => {
  const mention = newMention({ start, end, text: "z", pending: true }, null, true);
  return change(state, [{ document: "d", name: "note", mention, before: null, after: OPEN }], key, { show: mention });
};
const undo = (state, key) => update(state, { type: "undone", key });
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
  const none = newMention({ start: 0, end: 1, text: "x", note: "below_threshold", candidates: [candidate("C1", 0.4)] });
  assert.equal(shownChoice(none), NIL);
  assert.equal(shownChoice({ ...none, pending: true }), null);
  assert.equal(shownChoice(sure(0, 1)), "C1");
  assert.equal(shownChoice(tied(0, 1)), null);
  assert.equal(shownChoice({ ...tied(0, 1), chosen: "C2" }), "C2");
  assert.equal(shownChoice({ ...tied(0, 1), chosen: OPEN }), null);
});

test("undo is under the name that decided, over notes too", () => {
  let state = opened(sure(0, 1));
  state = decide(state, NIL, "a", "Ada");
  state = update(state, { type: "opened", note: { ...noteOf(sure(0, 1)), id: "other" } });
  state = decide(state, "C1", "b", "Ben");
  state = undo(state, "u1");
  assert.deepEqual(chosen(state), [null]);
  state = undo(state, "u2");
  assert.deepEqual(state.writes.map((one) => [one.document, one.chosen, one.reviewer]),
    [["d", NIL, "Ada"], ["other", "C1", "Ben"], ["other", null, "Ben"], ["d", null, "Ada"]]);
  assert.equal(undo(state, "u3"), state);
});

test("undo takes back one of two choices from the results of one search", () => {
  const open = opened(sure(0, 1));
  const item = { document: "d", name: "note", mention: open.note.mentions[0] };  // as it was when they were drawn
  let state = change(open, [changeOf(item, "C7")], "a");
  state = change(state, [changeOf(item, "C8")], "b");
  state = undo(state, "u");
  assert.deepEqual(chosen(state), ["C7"]);
  assert.deepEqual(chosen(undo(state, "v")), [null]);
});

test("a mark is stored at once, decided, and removed when it is not a mention", () => {
  let state = mark(opened(sure(0, 1)), 10, 12, "m");
  assert.equal(state.current, 1);
  assert.deepEqual(writes(state), [[10, OPEN, "Ada"]]);
  assert.deepEqual(progress(state.note), { total: 2, decided: 0, unsure: 0 });
  const removed = decide(state, NO_MENTION, "a");
  assert.equal(removed.note.mentions.length, 1);
  assert.deepEqual(writes(removed), [[10, OPEN, "Ada"], [10, null, "Ada"]]);
  state = update(state, { type: "filled", document: "d", span: { start: 10, end: 12 }, found: { cui: "C5", certainty: "sure", candidates: [candidate("C5", 1)] } });
  assert.equal(state.note.mentions[1].pending, false);
  state = decide(state, "C5", "b");
  const gone = decide(update(state, { type: "selected", place: 1 }), NO_MENTION, "c");
  assert.deepEqual(writes(gone).slice(1), [[10, "C5", "Ada"], [10, null, "Ada"]]);
  const back = undo(gone, "u");
  assert.deepEqual(chosen(back), [null, "C5"]);
  state = undo(undo(state, "v"), "w");
  assert.equal(state.note.mentions.length, 1);
  assert.deepEqual(writes(state).slice(2), [[10, OPEN, "Ada"], [10, null, "Ada"]]);
});

test("what the service refuses is shown as before", () => {
  let state = decide(opened(sure(0, 1), sure(2, 3)), "C1", "a");
  state = decide(state, "C1", "b");
  state = update(state, { type: "refused", keys: [state.writes[1].key] });
  assert.deepEqual(chosen(state), ["C1", null]);
  assert.equal(state.undo.length, 1);
  assert.equal(state.writes.length, 1);
  state = mark(state, 7, 8, "m");
  state = update(state, { type: "refused", keys: ["m-0"] });
  assert.equal(state.note.mentions.length, 2);
});

test("what settles a difference is written, and changes no answer", () => {
  let state = decide(opened(sure(0, 1)), "C1", "own");
  const item = { document: "d", name: "note", mention: newMention({ start: 0, end: 1, text: "x" }, "C1") };
  state = change(state, [changeOf(item, "C2")], "k", { about: { ...about(), settles: true } });
  assert.deepEqual(chosen(state), ["C1"]);
  assert.deepEqual(state.writes.map((one) => [one.chosen, one.settles]), [["C1", false], ["C2", true]]);
  state = update(state, { type: "written", keys: ["own-0"] });
  assert.equal(isUnsaved(state, state.note.mentions[0]), false);
  state = undo(state, "u");
  assert.deepEqual(chosen(state), ["C1"]);
  assert.deepEqual(state.writes.map((one) => [one.chosen, one.settles]), [["C2", true], ["C1", true]]);
});

test("what the same person decides in another tab is shown, unless it is newer here", () => {
  let state = decide(opened(sure(0, 1), sure(2, 3)), "C1", "a");
  const decisions = [{ document: "d", start: 0, end: 1, chosen: NIL }, { document: "d", start: 2, end: 3, chosen: NIL },
    { document: "other", start: 0, end: 1, chosen: NIL }, { document: "d", start: 5, end: 6, chosen: OPEN }];
  state = update(state, { type: "elsewhere", decisions });
  assert.deepEqual(chosen(state), ["C1", NIL, OPEN]);
  assert.equal(state.note.mentions[2].pending, true);
  state = update(state, { type: "elsewhere", decisions: [{ document: "d", start: 5, end: 6, chosen: null }] });
  assert.equal(state.note.mentions.length, 2);
});

test("a mark is linked to the part of the vocabulary of its note", () => {
  const asked = [];
  let state = update(EMPTY, { type: "opened", note: { ...noteOf(sure(0, 1)), filter: { types: ["DISO"] } } });
  const bench = noteBench({
    getState: () => state, dispatch(event) { state = update(state, event); }, say() {}, draw() {}, contexts: ["", "negated", "past"],
    reviewer: () => "Ada", key: () => "key", pause: () => new Promise(() => {}), focusSearch() {}, focusComment() {}, go() {},
    selected: () => ({ start: 5, end: 7, text: "xx" }), missed: () => null,
    service: { link(...given) { asked.push(given); return new Promise(() => {}); } },
  });
  bench.more.mark();
  assert.deepEqual(asked, [["xx", { types: ["DISO"] }]]);
});

test("what is noted on a mention is written beside its decision, and a does not accept it", () => {
  const page = {
    getState: () => state, dispatch(event) { state = update(state, event); }, say() {}, draw() {}, contexts: ["", "negated", "past"],
    reviewer: () => "Ada", key: () => "key", pause: () => new Promise(() => {}), focusSearch() {}, focusComment() {}, go() {},
    selected: () => null, missed: () => null, service: {},
  };
  let state = update(EMPTY, { type: "opened", note: noteOf(sure(0, 1), { ...sure(2, 3), context: "negated" }, sure(4, 5)) });
  const bench = noteBench(page);
  bench.more.context(bench.item());  // the first one too
  bench.remark(bench.item(), { comment: "see the letter", asks: true });
  assert.deepEqual(state.note.mentions[0].remark, { context: "negated", comment: "see the letter", asks: true });
  bench.more.sure();
  assert.deepEqual(state.note.mentions.map((one) => one.chosen), [null, null, "C1"]);
  const remarks = state.writes.filter((one) => one.to);
  assert.deepEqual(remarks.map(({ to, document, start, context, comment, asks }) => [to, document, start, context, comment, asks]),
    [["reviews/remarks", "d", 0, "negated", "", false], ["reviews/remarks", "d", 0, "negated", "see the letter", true]]);
  const again = addDecisions(noteOf(sure(0, 1)), state.writes);
  assert.equal(again.mentions[0].chosen, null);  // a remark is no decision
  state = update(state, { type: "refused", keys: ["key"] });
  assert.equal(state.note.mentions[0].remark, null);
});

test("nothing changes a state that is known", () => {
  const freeze = (value) => {
    if (value && typeof value === "object") Object.values(Object.freeze(value)).forEach(freeze);
    return value;
  };
  let state = freeze(opened(sure(0, 1), sure(2, 3)));
  state = freeze(decide(state, "C7", "a"));
  state = freeze(mark(state, 5, 6, "m"));
  state = freeze(undo(state, "u"));
  state = freeze(undo(state, "v"));
  state = freeze(update(state, freeze({ type: "selected", place: -1 })));
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
  state = mark(state, 5, 7, "m");
  state = decide(state, "C7", "b");
  const asSaved = noteOf(sure(0, 1), sure(2, 3));
  const shown = addDecisions(asSaved, state.writes);
  assert.deepEqual(shown.mentions.map((one) => [one.start, one.chosen]), [[0, "C1"], [2, null], [5, "C7"]]);
  assert.deepEqual(shown.mentions[2].text, "xx");
  assert.deepEqual(addDecisions({ ...asSaved, id: "other" }, state.writes).mentions, asSaved.mentions);
});

// What a person does: keys at some times, while the service answers late. The screen is
// looked at when a key is pressed, and what is written later has to be for what was there.

const SPANS = { touched: { start: 0, end: 3, text: "xxx" }, free: { start: 50, end: 52, text: "xx" }, none: null };

function person(latency, where, isDecided = false) {
  let state = EMPTY;
  let now = 0;
  let keys = 0;
  const waiting = [];
  const written = [];
  const answer = (value) => new Promise((done) => waiting.push({ at: now + latency, done: () => done(value()) }));
  const later = (work, time) => {
    const timer = { at: now + time, done: work };
    waiting.push(timer);
    return { stop() { if (waiting.includes(timer)) waiting.splice(waiting.indexOf(timer), 1); } };
  };
  const texts = new Map();
  const all = { a: [tied(2, 5), sure(10, 12, "C10"), sure(14, 16, "C11"), sure(20, 22, "C12")], b: [sure(1, 3, "C20"), sure(6, 8, "C21")] };
  const noteNamed = (id) => {
    const mentions = all[id].map((one) => (isDecided && id === "a" ? { ...one, chosen: "C9" } : one));
    return { ...noteOf(...mentions), id, name: id };
  };
  const group = (text, cui, spans, certainty = "sure") => ({
    documents: 1, mention: { text, start: 0, end: 1, cui, certainty, candidates: [candidate(cui, 1), candidate("C9", 0.5)], label: "", note: null },
    places: spans.map((start) => ({ document: "a", name: "a", start, end: start + 1, label: "", before: "", text, after: "" })),
  });
  const groups = [group("one", "C1", [0, 2]), group("two", "C2", [4, 6]), group("three", "C3", [8], "tied")];
  const isLeft = (one) => one.places.some(({ start }) => written.findLast((write) => write.start === start)?.chosen == null);
  let span = SPANS.none;
  let field = false;
  let bench = null;
  let said = "";
  const page = {
    getState: () => state,
    dispatch(event) {
      const before = state;
      state = update(state, event);
      for (const one of state.writes.slice(before.writes.length)) written.push(one);
    },
    service: {
      link: (text) => answer(() => ({ cui: `for ${text}`, certainty: "unsure", candidates: [candidate(`for ${text}`, 1), candidate("C30", 1)] })),
      occurrences: () => answer(() => ({ places: [{ document: "a", name: "a", start: 30, end: 31, text: "x" }, { document: "b", name: "b", start: 30, end: 31, text: "x" }] })),
      done: (document, reviewer) => { texts.set(document, reviewer); return answer(() => null); },
      next: () => answer(() => (texts.has("b") ? null : "b")),
      queue: () => answer(() => ({ first: groups.filter(isLeft), kb: "k", mentions: 5, groups: 3 })),
    },
    say(text) { said = text; },
    contexts: ["", "negated", "past"],
    reviewer: () => "Ada",
    key: () => `key-${keys += 1}`,
    pause: () => answer(() => null),
    draw() {},
    selected: () => span,
    missed: () => null,
    focusSearch() { field = true; },
    focusComment() {},
    go(id) { if (id) answer(() => { bench = makeBench(); state = update(state, { type: "opened", note: noteNamed(id) }); }); else bench = null; },
  };
  const makeBench = () => (where === "queue" ? queueBench(page) : noteBench(page));
  bench = makeBench();
  const ready = where === "queue" ? bench.load() : (state = update(state, { type: "opened", note: noteNamed("a") }));

  /** What a person sees: the mention or the places that a key is for. */
  const screen = () => {
    const item = bench?.item();
    if (!item) return [];
    return item.places ? item.places.filter((one) => one.chosen === null).map((one) => `${one.document} ${one.start}`) : [`${item.document} ${item.mention.start}-${item.mention.end}`];
  };
  const search = searchField({
    id: "search", label: "", item: () => bench?.item(), onfound() {}, onleave() { field = false; },
    onsearch: (running) => own.search(running),
    onchoose(concept, item) { own.choose(item, concept.cui, concept); field = false; },
  });
  let own = bench;  // the panel is that of a bench
  const event = (name, more) => search.field.dispatchEvent(Object.assign(new Event(name, { cancelable: true }), more));
  /** What a key does in the field, which has the focus. */
  const inField = (key, repeat) => {
    event("keydown", { key, repeat });
    if (key.length > 1 || search.field.readOnly) return;
    search.field.value += key;
    event("input");
  };
  const me = { answer, later };
  const idle = { item: () => null, busy: () => "", say() {}, more: {}, move() {}, choose() {} };
  return {
    ready, written, screen, state: () => state, said: () => said, isSearching: () => field,
    select(which) { span = SPANS[which]; },
    shown: () => bench.shown().map((one) => one.mention.text),
    bench: () => bench,
    /** Looks at another mention by the mouse; the focus leaves the field. */
    click(place) { page.dispatch({ type: "selected", place }); field = false; },
    /** A decision that is made in a note, while the queue is open. */
    decideElsewhere() {
      const mention = newMention({ start: 90, end: 91, text: "x" });
      page.dispatch({ type: "changed", changes: [changeOf({ document: "b", name: "b", mention }, "C1")], about: about(), key: "elsewhere" });
    },
    /** Presses a key; "/pain⏎" stands for a search with its Enter. */
    key(key, repeat = false) {
      acting = me;
      if (!field) own = bench;
      if (key === SEARCH && repeat) inField("Enter", true);
      else if (key === SEARCH && !field) {
        press({ key: "/" }, bench ?? idle, { inList: true, onButton: false });
        if (field) for (const one of [..."pain", "Enter"]) inField(one, false);
      } else if (key === SEARCH) inField("Enter", false);
      else if (field) inField(key, repeat);
      else if (bench) press({ key, repeat }, bench, { inList: true, onButton: false });
    },
    async pass(time) {
      const until = now + time;
      for (;;) {
        await new Promise(setImmediate);
        waiting.sort((a, b) => a.at - b.at);
        if (!waiting.length || waiting[0].at > until) break;
        const next = waiting.shift();
        now = Math.max(now, next.at);
        acting = me;
        next.done();
      }
      now = until;
    },
  };
}

const SEARCH = "/pain⏎";
const KEYS = [SEARCH, "Escape", ...COMMANDS.flatMap((one) => (one.keys.length === 9 ? ["1", "2"] : one.keys.filter((key) => !key.startsWith("Arrow"))))];

/** Where a key may write: the screen, the selection, what everywhere or undo say. */
async function checkPair(first, second, { latency, gap, where, select, held, isDecided = false }) {
  const one = person(latency, where, isDecided);
  await one.pass(2000);
  await one.ready;
  one.select(select);
  const label = `${first} ${second} in ${where}, ${select}, ${latency} ms, ${gap} apart${held ? ", held" : ""}`;
  const allowed = new Set();
  const undone = new Set();
  for (const key of [first, second]) {
    for (const place of one.screen()) allowed.add(place);
    const span = SPANS[select];
    if ("mc".includes(key) && span) allowed.add(`a ${span.start}-${span.end}`).add(`b ${span.start}-${span.end}`);
    if (key === "c" && span) for (const state of [one.state()]) for (const mention of state.note?.mentions ?? []) {
      if (mention.start < span.end && span.start < mention.end) allowed.add(`${state.note.id} ${mention.start}-${mention.end}`);
    }
    if (key === "a" && !one.isSearching()) {
      const { note } = one.state();
      for (const mention of note?.mentions ?? []) if (mention.certainty === "sure" && mention.chosen === null) allowed.add(`${note.id} ${mention.start}-${mention.end}`);
    }
    if (key === "e") allowed.add("a 30-31").add("b 30-31");
    if (key === "u") for (const change of one.state().undo.at(-1)?.changes ?? []) undone.add(change.mention.start);
    one.key(key);
    if (held) for (let at = 0; at < 5; at += 1) { await one.pass(gap / 5); one.key(key, true); } else await one.pass(gap);
  }
  await one.pass(5000);
  for (const write of one.written) {
    const place = where === "queue" ? `${write.document} ${write.start}` : `${write.document} ${write.start}-${write.end}`;
    assert.ok(allowed.has(place) || undone.has(write.start), `${label}: ${place} = ${write.chosen}`);
  }
  // Nothing that was shown as decided is lost: the last write of a place is what the note shows.
  for (const mention of one.state().note?.mentions ?? []) {
    const last = one.written.findLast((write) => !write.to && write.document === one.state().note.id && write.start === mention.start && write.end === mention.end);
    if (last) assert.equal(mention.chosen, last.chosen, label);
  }
  return one;
}

test("all pairs of keys at three latencies write only what was on the screen", async () => {
  let pairs = 0;
  for (const where of ["note", "queue"]) {
    for (const select of where === "note" ? ["none", "touched", "free"] : ["none"]) {
      for (const latency of [0, 150, 500]) {
        const all = KEYS.flatMap((first) => KEYS.flatMap((second) =>
          [0, 200, 1200].map((gap) => checkPair(first, second, { latency, gap, where, select, held: false }))));
        await Promise.all(all);
        pairs += all.length;
      }
    }
  }
  assert.ok(pairs > 5000);
});

test("after d no key changes the note that was done", async () => {
  for (const latency of [0, 150, 500]) {
    for (const key of KEYS) {
      for (const gap of [0, 200, 1200]) {
        const one = await checkPair("d", key, { latency, gap, where: "note", select: "touched", held: false, isDecided: true });
        assert.deepEqual(one.written.filter((write) => write.document === "a"), [], `d ${key} at ${latency} ms`);
      }
    }
  }
});

test("keys that are held decide once", async () => {
  for (const where of ["note", "queue"]) {
    for (const latency of [0, 150, 500]) {
      for (const first of ["/", ...KEYS]) {
        const one = await checkPair(first, "Enter", { latency, gap: 300, where, select: "free", held: true });
        const steps = one.state().undo.length;
        assert.ok(steps <= 2, `${first} at ${latency} ms: ${steps} steps`);
      }
    }
  }
});

test("a search decides the mention of its key, and keys do nothing until then", async () => {
  for (const where of ["note", "queue"]) {
    for (const latency of [0, 150, 500]) {
      const one = person(latency, where);
      await one.pass(2000);
      const [place] = one.screen();
      for (const key of [SEARCH, "Enter", "Enter", "x", "1"]) one.key(key);
      await one.pass(10_000);
      assert.deepEqual(new Set(one.written.map(({ chosen }) => chosen)), new Set(["found for pain"]));
      assert.ok(`${one.written[0].document} ${one.written[0].start}-${one.written[0].end}`.startsWith(place));
      assert.equal(one.isSearching(), false);
      one.key(SEARCH);
      one.key("Escape");  // it is left before the answer
      await one.pass(10_000);
      assert.equal(one.state().undo.length, 1);
    }
  }
});

test("a concept that was searched for has its name in another tab and after a reload", () => {
  const found = { cui: "C7", name: "Syncope", alias: "fainting", types: ["T184"] };
  const open = opened(sure(0, 5), sure(6, 9));
  const item = { document: "d", name: "note", mention: open.note.mentions[0] };
  const state = change(open, [changeOf(item, "C7", found)], "k");
  const [{ concept, ...write }] = state.writes;
  assert.equal(concept.name, "Syncope");
  for (const kept of [
    addDecisions(open.note, state.writes),  // not written before the reload
    addDecisions(open.note, [{ ...write, concept: found }]),  // read from the service
    update(open, { type: "elsewhere", decisions: state.writes }).note,
    // a mark whose candidates come later
    update({ ...EMPTY, note: addDecisions(noteOf(), state.writes) },
      { type: "filled", document: "d", span: { start: 0, end: 5 }, found: { certainty: "sure", candidates: [candidate("C1", 1)] } }).note,
  ]) {
    assert.equal(nameOf("C7", kept.mentions[0]), "Syncope");
    assert.deepEqual(kept.mentions[0].candidates.at(-1).types, ["T184"]);
  }
});

test("a search takes a concept that alone has what was typed, and no neighbour of nonsense", () => {
  const found = (...matches) => matches.map((match, at) => ({ cui: `C${at}`, match }));
  const taken = (...matches) => onlyFit(found(...matches))?.cui;
  assert.equal(taken("exact", "words", "words", "near"), "C0");
  assert.equal(taken("words", "near", "near"), "C0");
  assert.equal(taken("near"), undefined);
  assert.equal(taken("near", "near"), undefined);
  assert.equal(taken("words", "words"), undefined);
  assert.equal(taken("exact", "exact", "near"), undefined);
  assert.equal(taken(), undefined);
});

test("a search that runs decides its mention, also when another one is looked at", async () => {
  for (const latency of [150, 500]) {
    const one = person(latency, "note");
    await one.pass(2000);
    const [place] = one.screen();
    one.key(SEARCH);
    one.click(2);
    for (const key of ["x", "1", "a", "Enter"]) one.key(key);
    assert.match(one.said(), /This key did nothing: a concept is searched for/);
    await one.pass(10_000);
    assert.deepEqual(one.written.map((write) => `${write.document} ${write.start}-${write.end} ${write.chosen}`), [`${place} found for pain`]);
  }
});

test("a key accepts all that is sure and open, in one step, and nothing else", async () => {
  for (const latency of [0, 150, 500]) {
    const one = person(latency, "note");
    await one.pass(2000);
    one.key("n");
    one.key("0");  // one that is sure was decided otherwise
    one.key("a");
    one.key("a", true);
    await one.pass(5000);
    assert.match(one.said(), /2 accepted, u takes them back/);
    assert.deepEqual(chosen(one.state()), [null, NIL, "C11", "C12"]);
    one.key("a");
    assert.match(one.said(), /Nothing that is open is sure/);
    one.key("u");
    assert.deepEqual(chosen(one.state()), [null, NIL, null, null]);
    one.select("free");
    one.key("m");
    one.key("a");  // what is still looked up is not sure
    assert.deepEqual(chosen(one.state()).slice(2), ["C11", "C12", OPEN]);
  }
});

test("a digit after a mark waits for its candidates and decides no other mention", async () => {
  const one = await checkPair("m", "2", { latency: 500, gap: 0, where: "note", select: "free", held: false });
  assert.deepEqual(one.written.map((write) => [write.start, write.chosen]), [[50, OPEN]]);
  one.key("2");
  assert.deepEqual(one.written.at(-1).chosen, "C30");
});

test("a change is one step with its undo, and a digit after it is for the new span", async () => {
  for (const latency of [0, 500]) {
    const one = await checkPair("c", "1", { latency, gap: 0, where: "note", select: "touched", held: false });
    assert.deepEqual(one.written.slice(0, 2).map((write) => [write.start, write.end, write.chosen]), [[2, 5, NO_MENTION], [0, 3, OPEN]]);
    const { note } = one.state();
    assert.ok(isReplaced(note, note.mentions.find((mention) => mention.start === 2)));
    while (one.state().undo.length) one.key("u");
    assert.deepEqual(chosen(one.state()), [null, null, null, null]);
  }
});

test("a note with open mentions is done by a second d", async () => {
  for (const latency of [0, 150, 500]) {
    const one = await checkPair("d", "d", { latency, gap: 0, where: "note", select: "none", held: false });
    const count = one.written.length;
    assert.equal(one.state().note.id, "b");
    assert.equal(count, 0);
    one.key("d");
    assert.match(one.said(), /2 mentions are open/);
  }
});

test("one key decides the same text everywhere, in one step", async () => {
  const one = await checkPair("2", "n", { latency: 150, gap: 5000, where: "note", select: "none", held: false });
  one.key("e");
  assert.deepEqual(one.written.slice(1).map((write) => [write.document, write.start, write.chosen]), [["a", 30, "C2"], ["b", 30, "C2"]]);
  one.key("u");
  assert.deepEqual(one.written.slice(3).map((write) => [write.start, write.chosen]), [[30, null], [30, null]]);
  assert.equal(one.state().note.mentions.length, 4);
});

test("undo in the queue brings a group back, also after more was read", async () => {
  const one = person(150, "queue");
  await one.pass(1000);
  for (const key of ["Enter", "Enter", "1"]) one.key(key);
  await one.pass(1000);  // the rest was read: nothing
  assert.deepEqual(one.screen(), []);
  one.key("u");
  assert.deepEqual(one.screen(), ["a 8"]);
  one.key("u");
  assert.deepEqual(one.screen(), ["a 4", "a 6"]);
  assert.deepEqual(one.written.slice(5).map((write) => [write.start, write.chosen]), [[8, null], [6, null], [4, null]]);
  assert.deepEqual(one.shown(), ["two", "three"]);
});

test("keys wait while the queue is read, and undo takes back only what was decided there", async () => {
  const one = person(500, "queue");
  one.key("0");
  assert.match(one.said(), /This key did nothing: the queue is read/);
  await one.pass(1000);
  one.key("1");
  one.decideElsewhere();
  const count = one.written.length;
  one.key("u");
  assert.match(one.said(), /undone first, in its note/);
  assert.equal(one.written.length, count);
});

test("places that are not ticked stay open", async () => {
  const one = person(0, "queue");
  await one.pass(100);
  one.bench().item().places[0].taken = false;
  one.key("1");
  assert.deepEqual(one.written.map((write) => write.start), [2]);
  assert.deepEqual(one.screen(), ["a 0"]);
  one.key("0");
  assert.deepEqual(one.written.slice(1).map((write) => [write.start, write.chosen]), [[0, "NIL"]]);
});
