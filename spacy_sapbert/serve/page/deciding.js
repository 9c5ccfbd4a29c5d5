// What the commands do in a note and in a list, such as the queue. What they need of the browser and of the
// service is given to them.

import { NIL, NO_MENTION, OPEN, changeOf, contextOf, isOpen, isReplaced, newMention, overlaps, placeOf } from "./state.js";

const PAUSE = 200;  // milliseconds without a decision before it is asked where else it fits

/**
 * @typedef {import("./state.js").Mention} Mention
 * @typedef {import("./state.js").Item} Item
 * @typedef {import("./state.js").Span & {text: string}} Selected
 *
 * @typedef {typeof import("./bench.js").PAGE} Page
 */

/** A choice in words. */
export function nameOf(chosen, mention) {
  if (chosen === NIL) return "no concept";
  if (chosen === NO_MENTION) return "not a mention";
  return mention.candidates.find((one) => one.cui === chosen)?.name ?? chosen;
}

/**
 * @param {Page & {selected: () => Selected|null, missed: () => Selected|null, draw: () => void,
 *   focusSearch: () => void, focusComment: () => void, go: (document: string|null) => void}} page
 */
export function noteBench(page) {
  const { getState, dispatch, service, say } = page;
  let opening = false;  // another note
  let searching = false;
  let asked = "";  // the note that has open mentions, and is done all the same
  let decisions = 0;
  let offer = null;  // where the last choice fits too
  const asking = new Set();  // marks whose candidates are on their way

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
    fill();
  };

  /** Asks for the candidates of marks, which are on the screen already. */
  const fill = () => {
    const { note } = getState();
    for (const { start, end, text, pending } of note?.mentions ?? []) {
      const key = `${note?.id} ${start}-${end}`;
      if (!pending || asking.has(key)) continue;
      asking.add(key);
      const answered = (found) => {
        asking.delete(key);
        dispatch({ type: "filled", document: note?.id ?? null, span: { start, end }, found });
      };
      service.link(text, note?.filter ?? {}).then(answered, (error) => {
        say(error.message, true);
        answered({ certainty: "unsure" });  // it can be searched for
      });
    }
  };

  /** Asks where else a choice fits. @param {Item} item @param {string} chosen */
  const findMore = async (item, chosen) => {
    const own = decisions;
    const { reviewer } = about();
    await page.pause(PAUSE);
    if (own !== decisions || item.document === null) return;
    let found;
    try { found = await service.occurrences(item.mention.text, item, reviewer); } catch { return; }
    if (own !== decisions || !found?.places.length) return;
    const { note } = getState();
    const places = found.places.filter((one) => one.document !== note?.id || (note && isFree(note, one)
      && (chosen !== NO_MENTION || placeOf(note, one) >= 0)));
    offer = places.length ? { places, item, chosen, name: nameOf(chosen, item.mention) } : null;
    page.draw();
  };

  const choose = (item, chosen, candidate) => {
    if (!item || !mayWrite()) return;
    say("");
    const changed = changeOf(item, chosen, candidate);
    change([changed]);
    if (changed.after !== null) findMore({ ...item, mention: changed.mention }, chosen);
  };

  /** Whether nothing is decided at a place. @param {import("./state.js").Note} note @param {any} place */
  const isFree = (note, place) => note.mentions.every((one) => !overlaps(one, place)
    || (isOpen(one) && one.start === place.start && one.end === place.end));

  const item = () => {
    const { note, current } = getState();
    const mention = note?.mentions[current];
    return note && mention ? { document: note.id, name: note.name, mention } : null;
  };

  /** Marks a span; in place of a mention, it is one step. @param {Selected|null} span @param {Mention} [old] */
  const mark = (span, old) => {
    const note = mayWrite();
    if (!note) return;
    if (!span) { say("Select words in the text that are not marked, or write them under “Missed words”."); return; }
    const { id: document, name } = note;
    const place = placeOf(note, span);
    if (place >= 0 && note.mentions[place].chosen !== NO_MENTION) {
      dispatch({ type: "selected", place });
      say("It is marked already.");
      return;
    }
    const mention = note.mentions[place] ?? newMention({ ...span, label: old?.label ?? "", pending: true }, null, true);
    const left = old ? [changeOf({ document, name, mention: old }, NO_MENTION)] : [];
    change([...left, { document, name, mention, before: mention.chosen, after: OPEN }], span);
    say(`${old ? "Changed" : "Marked"}. Choose its concept, or undo.`);
  };

  /** Marks a span in place of the mention that it touches. @param {Selected|null} span */
  const moveTo = (span) => {
    const { note, current } = getState();
    const fits = (one) => one && span && one.chosen !== NO_MENTION && overlaps(one, span);
    const old = fits(note?.mentions[current]) ? note?.mentions[current] : note?.mentions.find(fits);
    if (old) mark(span, old);
    else say("Select the right words over a mention first.");
  };

  const everywhere = () => {
    const { note } = getState();
    if (!offer) { say("There are no other places that are known to be the same."); return; }
    const { places, chosen, item: { mention } } = offer;
    const { label, candidates, cui, certainty } = mention;
    const changes = places.map(({ document, name, start, end, text }) => {
      const own = newMention({ start, end, text, label, candidates, cui, certainty }, null, true);
      const known = document === note?.id ? note?.mentions[placeOf(note, own)] : null;
      return { document, name, mention: known ?? own, before: known?.chosen ?? null, after: chosen };
    });
    const said = `${changes.length} more: “${mention.text}” is ${offer.name}. One undo takes all of them back.`;
    change(changes);
    say(said);
  };

  /** Accepts all that is sure and open in this note: one step. */
  const acceptSure = () => {
    const note = mayWrite();
    if (!note) return;
    const all = note.mentions.filter((one) => isOpen(one) && one.certainty === "sure");
    const sure = all.filter((one) => !contextOf(one));
    const left = all.length > sure.length ? ` ${all.length - sure.length} left: negated, past, of the family or suspected.` : "";
    if (!sure.length) { say(`Nothing that is open is sure.${left}`); return; }
    const { id: document, name } = note;
    change(sure.map((mention) => changeOf({ document, name, mention }, mention.cui)));
    say(`${sure.length} accepted, u takes ${sure.length === 1 ? "it" : "them"} back.${left}`);
  };

  /** Notes something on a mention. @param {Item|null} item @param {Partial<import("./state.js").Remark>} said */
  const remark = (item, said) => {
    if (!item || !mayWrite() || item.document !== getState().note?.id) return;
    const known = item.mention.remark ?? { context: null, comment: "", asks: false };
    const { start, end } = item.mention;
    dispatch({ type: "remarked", span: { start, end }, remark: { ...known, ...said }, reviewer: page.reviewer(), key: page.key() });
  };

  /** Says in turn what the text says of a mention. */
  const context = (item) => {
    if (!item) { say("There is no mention."); return; }
    const next = page.contexts[(page.contexts.indexOf(contextOf(item.mention)) + 1) % page.contexts.length];
    remark(item, { context: next });
    say(`“${item.mention.text}”: ${next || "it is so"}.`);
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
    item, choose, say, fill,
    arrows: ["ArrowRight", "ArrowLeft"],
    busy: () => (opening ? "the next note is opened." : searching ? "a concept is searched for." : ""),
    move(step) {
      const { note, current } = getState();
      if (!note) return;
      const count = note.mentions.length;
      let place = current;
      do { place = (place + step + count) % (count || 1); } while (place !== current && isReplaced(note, note.mentions[place]));
      dispatch({ type: "selected", place });
    },
    search(running) { searching = running; },
    offer: () => offer,
    remark,
    more: {
      context, comment: page.focusComment,
      noMention: (one) => choose(one, NO_MENTION),
      search: page.focusSearch, sure: acceptSure, everywhere, undo, done,
      mark: () => mark(page.selected() ?? page.missed()),
      change: () => moveTo(page.selected()),
    },
  };
}

/**
 * A list of items with a `mention` each, which are decided one after the other. `decide` returns what
 * takes a decision back, or null if nothing was decided; `draw` gets the items that changed; `finished`
 * is called when nothing that follows is open, and when the last item is left, with this item.
 * `undoEarlier` takes back what was decided before the list was there, and returns where.
 */
export function listBench({ say, draw, decide, focusSearch, more = {}, finished = (_last) => {}, undoEarlier = () => "" }) {
  /** @type {any[]} */
  let shown = [];
  /** @type {any} */
  let current = null;
  let doing = "";
  /** @type {{item: any, back: () => boolean}[]} */
  const undos = [];

  const show = (item) => {
    const before = current;
    current = item;
    draw([before, item].filter(Boolean));
  };
  /** Shows an item, or if it is decided the next open one, and returns whether there is one. */
  const showOpen = (item) => {
    const next = isOpen(item.mention) ? item : shown.slice(shown.indexOf(item) + 1).find((one) => isOpen(one.mention));
    show(next ?? item);
    return next !== undefined;
  };
  /** Keeps how an item, or several, is taken back. */
  const record = (item, back) => undos.push({ item, back });

  const undo = () => {
    const last = undos.at(-1);
    if (!last) {
      const where = undoEarlier();
      say(where ? `Undone in “${where}”.` : "Nothing to undo.");
      return;
    }
    if (!last.back()) { say("What was decided since then is undone first, in its note."); return; }
    undos.pop();
    if (!shown.includes(last.item)) shown = [last.item, ...shown];
    current = last.item;
    draw();
    say("Undone.");
  };

  return {
    item: () => current,
    shown: () => shown,
    busy: () => doing,
    say, record, show,
    arrows: ["ArrowDown", "ArrowUp"],
    /** Shows other items. */
    fill(items) {
      shown = items;
      if (!items.includes(current)) current = items[0] ?? null;
      draw();
    },
    work(text) { doing = text; },
    search(running) { doing = running ? "a concept is searched for." : ""; },
    move(step) {
      const place = shown.indexOf(current) + step;
      show(shown[Math.max(0, Math.min(shown.length - 1, place))] ?? null);
      if (place === shown.length) finished(current);
    },
    showOpen,
    choose(item, chosen, candidate) {
      const back = decide(item, chosen, candidate);
      if (!back) return;
      record(item, back);
      say(`“${item.mention.text}” is ${nameOf(chosen, item.mention)}.`);
      if (!showOpen(item)) finished();
    },
    /** @type {any} */
    more: { search: focusSearch, undo, ...more },
  };
}

/**
 * Writes decisions as one step, and returns what takes it back, unless something newer has to be
 * taken back before.
 */
export function writeStep({ dispatch, getState, key }, changes, about) {
  dispatch({ type: "changed", changes, about, key: key() });
  const step = getState().undo.at(-1);
  return () => {
    const steps = getState().undo;
    if (steps.at(-1) === step) dispatch({ type: "undone", key: key() });
    else if (step && steps.includes(step)) return false;
    return true;  // also if the service has refused it
  };
}

/** Takes back what was decided last, and returns the name of its note; "" = there is nothing. */
export function undoLast({ dispatch, getState, key }) {
  const step = getState().undo.at(-1);
  if (step) dispatch({ type: "undone", key: key() });
  return step?.changes[0].name ?? "";
}

/**
 * The queue: a group of equal mentions is an item, whose ticked places are decided together.
 * @param {Page & {focusSearch: () => void, draw: (items?: any[]) => void}} page
 */
export function queueBench(page) {
  let about = { reviewer: "", kb: "" };
  let left = 0;  // open mentions, also those that were not read
  /** What was left for later stays at the end. */
  const skipped = new Set();
  const keyOf = ({ mention }) => `${mention.text.toLowerCase()}\n${mention.cui}`;

  /** @param {any} [last] the item that was left */
  const load = async (last) => {
    const reviewer = page.reviewer();
    if (!reviewer) return;
    bench.work("the queue is read.");
    const known = bench.shown();
    for (const one of [...known.slice(0, known.indexOf(bench.item())), ...(last ? [last] : [])]) {
      if (isOpen(one.mention)) skipped.add(keyOf(one));
    }
    try {
      const found = await page.service.queue(reviewer);
      about = { reviewer, kb: found.kb };
      left = found.mentions;
      const groups = found.first.map((one) => ({
        ...one, mention: newMention(one.mention), places: one.places.map((place) => ({ ...place, chosen: null, taken: true })),
      }));
      bench.work("");
      bench.fill(groups.sort((a, b) => Number(skipped.has(keyOf(a))) - Number(skipped.has(keyOf(b)))));
    } catch (error) { page.say(error.message, true); }
    bench.work("");
  };

  const decide = (group, chosen, candidate) => {
    const before = { places: group.places, mention: group.mention };
    const open = before.places.filter((one) => one.chosen === null);
    const places = (open.length ? open : before.places).filter((one) => one.taken);
    if (!places.length) { page.say("Tick a place first."); return null; }
    const changes = places.map(({ document, name, start, end, label, text, chosen: old }) =>
      changeOf({ document, name, mention: { ...group.mention, start, end, label, text, chosen: old } }, chosen, candidate));
    const back = writeStep(page, changes, about);
    group.places = before.places.map((one) => (places.includes(one) ? { ...one, chosen } : { ...one, taken: true }));
    const isDone = group.places.every((one) => one.chosen !== null);
    group.mention = { ...changes[0].mention, text: before.mention.text, chosen: isDone ? chosen : null };
    const count = open.length && places.length;
    left -= count;
    return () => {
      if (!back()) return false;
      Object.assign(group, before);
      left += count;
      return true;
    };
  };

  const bench = listBench({
    ...page, decide, finished: load,
    undoEarlier() {
      const where = undoLast(page);
      if (where) load();
      return where;
    },
    more: { noMention: (one) => one && bench.choose(one, NO_MENTION) },
  });
  return { ...bench, load, left: () => left };
}
