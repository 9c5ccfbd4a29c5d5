// What the commands do in a note and in the queue. What they need of the browser and of the
// service is given to them.

import { NIL, NO_MENTION, OPEN, changeOf, isOpen, isReplaced, newMention, overlaps, placeOf } from "./state.js";

const PAUSE = 200;  // milliseconds without a decision before it is asked where else it fits

/**
 * @typedef {import("./state.js").Mention} Mention
 * @typedef {import("./state.js").Item} Item
 * @typedef {import("./state.js").Span & {text: string}} Selected
 *
 * @typedef {object} Service
 * @property {(text: string) => Promise<any>} link what is found for a text
 * @property {(text: string, item: Item, reviewer: string) => Promise<any>} occurrences
 * @property {(document: string, reviewer: string, done: boolean) => Promise<unknown>} done
 * @property {(reviewer: string) => Promise<string|null>} next id of a note that is not done
 * @property {(reviewer: string) => Promise<any>} queue
 *
 * @typedef {object} Page
 * @property {() => import("./state.js").State} getState
 * @property {(event: import("./state.js").Event) => void} dispatch
 * @property {Service} service
 * @property {(text: string, bad?: boolean) => void} say
 * @property {() => string} reviewer the name; it is asked for if there is none
 * @property {() => string} key a new one
 * @property {(milliseconds: number) => Promise<unknown>} pause
 * @property {() => void} draw
 */

/** @param {string} chosen @param {any} mention @param {any} [candidate] */
export function nameOf(chosen, mention, candidate) {
  if (chosen === NIL) return "no concept";
  if (chosen === NO_MENTION) return "not a mention";
  return (candidate ?? mention.candidates.find((/** @type {any} */ one) => one.cui === chosen))?.name ?? chosen;
}

/**
 * @param {Page & {selected: () => Selected|null, missed: () => Selected|null,
 *   focusSearch: () => void, go: (document: string|null) => void}} page
 */
export function noteBench(page) {
  const { getState, dispatch, service, say } = page;
  let opening = false;  // another note
  let searching = false;
  let asked = "";  // the note that has open mentions, and is done all the same
  let decisions = 0;
  /** Where the last choice fits too. @type {any} */
  let offer = null;

  const about = () => ({ reviewer: page.reviewer(), kb: getState().note?.kb ?? "" });
  /** Whether a decision can be written. @returns {import("./state.js").Note|null} */
  const mayWrite = () => {
    const { note } = getState();
    return note && (!note.id || page.reviewer()) ? note : null;
  };
  /** @param {import("./state.js").Change[]} changes @param {import("./state.js").Span} [show] */
  const change = (changes, show) => {
    asked = "";
    offer = null;
    decisions += 1;
    dispatch({ type: "changed", changes, about: about(), key: page.key(), show });
  };

  /** Asks for the candidates of a mark, which is on the screen already. @param {Mention} mention */
  const fill = async (mention) => {
    const document = getState().note?.id ?? null;
    let found = { certainty: "unsure" };  // it can be searched for
    try { found = await service.link(mention.text); } catch (error) { say(error.message, true); }
    const { start, end } = mention;
    dispatch({ type: "filled", document, span: { start, end }, found: /** @type {any} */ (found) });
  };

  /** Asks where else a choice fits. @param {Item} item @param {string} chosen @param {any} candidate */
  const findMore = async (item, chosen, candidate) => {
    const own = decisions;
    const { reviewer } = about();
    await page.pause(PAUSE);
    if (own !== decisions || item.document === null) return;
    let found;
    try { found = await service.occurrences(item.mention.text, item, reviewer); } catch { return; }
    if (own !== decisions || !found?.places.length) return;
    const { note } = getState();
    const places = found.places.filter((/** @type {any} */ one) => one.document !== note?.id || (note && isFree(note, one)
      && (chosen !== NO_MENTION || placeOf(note, one) >= 0)));
    const elsewhere = places.filter((/** @type {any} */ one) => one.document !== note?.id);
    offer = {
      places, item, chosen, name: nameOf(chosen, item.mention, candidate), here: places.length - elsewhere.length,
      elsewhere: elsewhere.length, documents: new Set(elsewhere.map((/** @type {any} */ one) => one.document)).size,
    };
    if (!places.length) offer = null;
    page.draw();
  };

  /** @param {Item|null} item @param {string} chosen @param {any} [candidate] */
  const choose = (item, chosen, candidate) => {
    if (!item || !mayWrite()) return;
    say("");
    const changed = changeOf(item, chosen, candidate);
    change([changed]);
    if (changed.after !== null) findMore({ ...item, mention: changed.mention }, chosen, candidate);
  };

  /** Whether nothing is decided at a place. @param {import("./state.js").Note} note @param {any} place */
  const isFree = (note, place) => note.mentions.every((one) => !overlaps(one, place)
    || (isOpen(one) && one.start === place.start && one.end === place.end));

  const item = () => {
    const { note, current } = getState();
    const mention = note?.mentions[current];
    return note && mention ? { document: note.id, name: note.name, mention } : null;
  };

  /** @param {Selected|null} span */
  const mark = (span) => {
    const note = mayWrite();
    if (!note) return;
    if (!span) { say("Select words in the text, or write them under “Missed words”."); return; }
    const place = placeOf(note, span);
    if (place >= 0 && note.mentions[place].chosen !== NO_MENTION) {
      dispatch({ type: "selected", place });
      say("It is marked already.");
      return;
    }
    const mention = note.mentions[place] ?? newMention({ ...span, pending: true }, null, true);
    change([{ document: note.id, name: note.name, mention, before: mention.chosen, after: OPEN }], span);
    if (mention.pending) fill(mention);
    say("Marked. Choose its concept, or undo.");
  };

  /** The mention that a selection would change. @param {Selected|null} span */
  const touched = (span) => {
    const { note, current } = getState();
    const fits = (/** @type {Mention|undefined} */ one) => one && span && one.chosen !== NO_MENTION && overlaps(one, span);
    return fits(note?.mentions[current]) ? note?.mentions[current] : note?.mentions.find(fits);
  };

  /** Another span in place of a mention: one step. @param {Selected|null} span */
  const moveTo = (span) => {
    const note = mayWrite();
    const old = touched(span);
    if (!note || !span || !old) { if (note) say("Select the right words over a mention first."); return; }
    const known = note.mentions[placeOf(note, span)];
    if (known && known.chosen !== NO_MENTION) { say("It is marked already."); return; }
    const mention = known ?? newMention({ ...span, label: old.label, pending: true }, null, true);
    const { id: document, name } = note;
    change([changeOf({ document, name, mention: old }, NO_MENTION), { document, name, mention, before: mention.chosen, after: OPEN }], span);
    if (mention.pending) fill(mention);
    say("Changed. Choose its concept, or undo.");
  };

  const everywhere = () => {
    const { note } = getState();
    if (!offer) { say("There are no other places that are known to be the same."); return; }
    const { places, chosen, item: { mention } } = offer;
    const { label, candidates, cui, certainty } = mention;
    const changes = places.map((/** @type {any} */ { document, name, start, end, text }) => {
      const own = newMention({ start, end, text, label, candidates, cui, certainty }, null, true);
      const known = document === note?.id ? note?.mentions[placeOf(note, own)] : null;
      return { document, name, mention: known ?? own, before: known?.chosen ?? null, after: chosen };
    });
    const { name } = offer;
    change(changes);
    say(`${changes.length} more: “${mention.text}” is ${name}. One undo takes all of them back.`);
  };

  const undo = () => {
    const { undo: steps, note } = getState();
    const step = steps.at(-1);
    if (!step) { say("Nothing to undo."); return; }
    asked = "";
    offer = null;
    decisions += 1;
    dispatch({ type: "undone", key: page.key() });
    const elsewhere = step.changes.every((one) => one.document !== note?.id);
    say(elsewhere ? `Undone in “${step.changes[0].name}”.` : "Undone.");
  };

  const done = async () => {
    const note = mayWrite();
    if (!note?.id) return;
    const { reviewer } = about();
    const isDone = note.done.includes(reviewer);
    const left = note.mentions.filter(isOpen).length;
    if (!isDone && left && asked !== note.id) {
      asked = note.id;
      say(`${left === 1 ? "1 mention is" : `${left} mentions are`} open: press d again if the note is done all the same.`);
      return;
    }
    opening = true;
    page.draw();
    try {
      await service.done(note.id, reviewer, !isDone);
      page.go(isDone ? note.id : await service.next(reviewer));  // nothing acts on this note any more
    } catch (error) {
      opening = false;
      say(error.message, true);
      page.draw();
    }
  };

  return {
    item, choose, say, undo, fill,
    arrows: ["ArrowRight", "ArrowLeft"],
    busy: () => (opening ? "the next note is opened." : searching ? "a concept is searched for." : ""),
    move(/** @type {number} */ step) {
      const { note, current } = getState();
      if (!note) return;
      const count = note.mentions.length;
      let place = current;
      do { place = (place + step + count) % (count || 1); } while (place !== current && isReplaced(note, note.mentions[place]));
      dispatch({ type: "selected", place });
    },
    search(/** @type {boolean} */ running) { searching = running; },
    offer: () => offer,
    touched,
    markSpan: mark,
    more: {
      noMention: (/** @type {Item|null} */ one) => choose(one, NO_MENTION),
      search: page.focusSearch, everywhere, undo, done,
      mark: () => mark(page.selected() ?? page.missed()),
      change: () => moveTo(page.selected()),
    },
  };
}

/**
 * The queue: a group of equal mentions is an item, whose ticked places are decided together.
 * @param {Page & {focusSearch: () => void}} page
 */
export function queueBench(page) {
  const { getState, dispatch, service, say } = page;
  const view = { groups: /** @type {any[]} */ ([]), current: 0, kb: "", left: 0, rest: 0 };
  let reading = false;
  let searching = false;
  /** What can be taken back, also after more was read. @type {any[]} */
  const decided = [];
  /** What was left for later stays at the end. @type {Set<string>} */
  const skipped = new Set();
  const keyOf = (/** @type {any} */ one) => `${one.mention.text.toLowerCase()}\n${one.mention.cui}`;

  const load = async () => {
    const reviewer = page.reviewer();
    if (!reviewer) return;
    reading = true;
    try {
      const found = await service.queue(reviewer);
      const later = (/** @type {any} */ one) => Number(skipped.has(keyOf(one)));
      const groups = found.first.map((/** @type {any} */ one) => ({ ...one, mention: newMention(one.mention) }))
        .sort((/** @type {any} */ a, /** @type {any} */ b) => later(a) - later(b));
      Object.assign(view, { groups, current: 0, kb: found.kb, left: found.mentions, rest: found.groups });
      say("");
    } catch (error) { say(error.message, true); }
    reading = false;
    page.draw();
  };

  const item = () => view.groups[view.current] ?? null;

  /** @param {any} group @param {string} chosen @param {any} [candidate] */
  const choose = (group, chosen, candidate) => {
    const reviewer = page.reviewer();
    if (!reviewer) return;
    const [places, others] = [true, false].map((taken) =>
      group.places.filter((/** @type {any} */ one) => (one.taken !== false) === taken));
    if (!places.length) { say("Tick a place first."); return; }
    const changes = places.map((/** @type {any} */ { document, name, start, end, label, text }) =>
      changeOf({ document, name, mention: { ...group.mention, start, end, label, text } }, chosen, candidate));
    dispatch({ type: "changed", changes, about: { reviewer, kb: view.kb }, key: page.key() });
    const rest = others.length ? [{ ...group, places: others.map((/** @type {any} */ one) => ({ ...one, taken: true })) }] : [];
    decided.push({ step: getState().undo.at(-1), group, rest, places });
    view.groups = view.groups.flatMap((one) => (one === group ? rest : [one]));
    view.left -= places.length;
    view.rest -= 1 - rest.length;
    say(`${places.length} ${places.length === 1 ? "decision" : "decisions"}: “${group.mention.text}” is ${nameOf(chosen, group.mention, candidate)}.`);
    if (view.current >= view.groups.length) load();
    page.draw();
  };

  const undo = () => {
    const step = getState().undo.at(-1);
    if (!step) { say("Nothing to undo."); return; }
    dispatch({ type: "undone", key: page.key() });
    const last = decided.findLast((one) => one.step === step);
    say(last ? "Undone." : `Undone in “${step.changes[0].name}”.`);
    if (!last) { load(); return; }
    decided.splice(decided.indexOf(last), 1);
    view.left += last.places.length;
    view.rest += 1 - last.rest.length;
    view.groups = view.groups.filter((one) => !last.rest.includes(one));
    view.current = Math.min(view.current, view.groups.length);
    view.groups.splice(view.current, 0, last.group);
    page.draw();
  };

  return {
    item, choose, say, undo, load, view,
    busy: () => (reading ? "the queue is read." : searching ? "a concept is searched for." : ""),
    move(/** @type {number} */ step) {
      const group = item();
      if (group && step > 0) skipped.add(keyOf(group));
      view.current = Math.max(0, Math.min(view.groups.length - 1, view.current + step));
      page.draw();
    },
    search(/** @type {boolean} */ running) { searching = running; },
    more: {
      noMention: (/** @type {any} */ one) => one && choose(one, NO_MENTION),
      search: page.focusSearch, undo,
    },
  };
}
