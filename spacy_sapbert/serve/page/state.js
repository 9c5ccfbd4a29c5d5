// What is on the page while notes are decided: one record, and pure functions from a
// record and an event to the next record. Nothing here knows the browser or the service.

/**
 * @typedef {object} Candidate
 * @property {string} cui
 * @property {string} name
 * @property {string} alias
 * @property {number|null} score
 * @property {number|null} probability
 * @property {string[]} types
 * @property {string|null} tie
 *
 * @typedef {{start: number, end: number}} Span in characters (code points)
 *
 * @typedef {object} Mention
 * @property {number} start
 * @property {number} end
 * @property {string} text
 * @property {string} label
 * @property {string|null} cui what is proposed; null = no concept
 * @property {string|null} note why there is none
 * @property {"sure"|"unsure"|"tied"|"none"} certainty of the proposal; "none" = there is none
 * @property {boolean} [proposed] the proposal comes from a file
 * @property {boolean} [known] the knowledge base has the concept that is proposed
 * @property {boolean} [pending] its candidates are on their way
 * @property {Candidate[]} candidates
 * @property {string|null} chosen what a person chose; null = nothing yet, OPEN = only marked
 * @property {boolean} [marked] as the service says of `own`
 * @property {boolean} own a person has marked it
 * @property {string} [context] what a component of the pipeline says of it: "negated" …
 * @property {Remark|null} [remark] of the reviewer
 * @property {(Remark & {reviewer: string})[]} [others] of colleagues
 *
 * @typedef {{context: string|null, comment: string, asks: boolean}} Remark on a mention, whatever its concept is;
 *   the context null = as it was found
 *
 * @typedef {object} Note
 * @property {string|null} id null = it is not kept
 * @property {string} name
 * @property {string} text
 * @property {string} kb digest of the knowledge base
 * @property {string[]} done who has done it
 * @property {{[field: string]: string[]}} [filter] the part of the vocabulary for it
 * @property {Mention[]} mentions
 *
 * @typedef {{document: string|null, name: string, mention: Mention}} Item a mention of a document, as it was
 *   on the screen
 *
 * @typedef {{reviewer: string, kb: string, settles?: boolean}} About a change: who makes it, and whether it
 *   says what holds, and is no answer of the reviewer
 *
 * @typedef {Item & {before: string|null, after: string|null}} Change
 *
 * @typedef {{document: string, start: number, end: number, label: string, chosen: string|null,
 *   concept?: Partial<Candidate>, to?: string}} Decision `concept` is what is shown of the one that is chosen;
 *   with `to` it is something else
 *
 * @typedef {Decision & {key: string, reviewer: string, before: any, kb: string, settles: boolean,
 *   shown: {cui: string, score: number|null}[], to?: string}} Write a decision that is not written yet; `to` is
 *   where it is sent, if it is not on a mention of a note: then it has fields of its own
 *
 * @typedef {{about: About, changes: Change[], keys: string[]}} Step what one undo takes back
 *
 * @typedef {object} State
 * @property {Note|null} note
 * @property {number} current place of the chosen mention; -1 = none
 * @property {Step[]} undo
 * @property {Write[]} writes
 *
 * @typedef {{type: "opened", note: Note, current?: number}
 *   | {type: "selected", place: number}
 *   | {type: "changed", changes: Change[], about: About, key: string, show?: Span}
 *   | {type: "filled", document: string|null, span: Span, found: Partial<Mention>}
 *   | {type: "undone", key: string}
 *   | {type: "remarked", span: Span, remark: Remark, reviewer: string, key: string}
 *   | {type: "queued", writes: any[]}
 *   | {type: "written", keys: string[]}
 *   | {type: "refused", keys: string[]}
 *   | {type: "elsewhere", decisions: Decision[]}} Event
 */

export const NIL = "NIL";
export const NO_MENTION = "NO_MENTION";
export const OPEN = "OPEN";
export const REMARKS = "reviews/remarks";

/** @type {State} */
export const EMPTY = { note: null, current: -1, undo: [], writes: [] };

/** @param {Partial<Mention> & {start: number, end: number, text: string}} found @returns {Mention} */
export function newMention(found, /** @type {string|null} */ chosen = null, own = found.marked ?? chosen === OPEN) {
  return { label: "", cui: null, note: null, certainty: "none", candidates: [], ...found, chosen, own };
}

/** What the text says of a mention: "" = it is so. @param {Mention} mention */
export const contextOf = (mention) => mention.remark?.context ?? mention.context ?? "";

/** @param {{chosen: string|null}} mention */
export const isOpen = (mention) => mention.chosen === null || mention.chosen === OPEN;

/** What Enter means: what is shown. Null = a person has to say which. @param {Mention} mention */
export function shownChoice(mention) {
  if (!isOpen(mention)) return mention.chosen;
  if (mention.pending) return null;
  if (mention.certainty === "none") return NIL;
  return mention.certainty === "sure" ? mention.cui : null;
}

/** @param {Note|null} note */
export function progress(note) {
  const mentions = note?.mentions ?? [];
  const open = mentions.filter(isOpen);
  const unsure = open.filter((one) => one.certainty === "unsure" || one.certainty === "tied");
  return { total: mentions.length, decided: mentions.length - open.length, unsure: unsure.length };
}

/** @param {Span} a @param {Span} b */
const same = (a, b) => a.start === b.start && a.end === b.end;

/** @param {Span} a @param {Span} b */
export const overlaps = (a, b) => a.start < b.end && b.start < a.end;

/** @param {Note|null} note @param {Span} span */
export const placeOf = (note, span) => note?.mentions.findIndex((one) => same(one, span)) ?? -1;

/** Whether another span has taken the place of a mention that is none. @param {Note} note @param {Mention} mention */
export function isReplaced(note, mention) {
  return mention.chosen === NO_MENTION
    && note.mentions.some((one) => one.own && one.chosen !== NO_MENTION && overlaps(one, mention));
}

/** @param {State} state @param {Span} mention of the note */
export function isUnsaved(state, mention) {
  return state.writes.some((one) => !one.settles && one.document === state.note?.id && same(one, mention));
}

/**
 * A note with a mention as it is chosen now: an own mark exists as long as it has a decision.
 * @param {Note} note @param {Mention} mention @param {string|null} chosen @returns {Note}
 */
function put(note, mention, chosen) {
  const known = note.mentions[placeOf(note, mention)];
  const others = note.mentions.filter((one) => one !== known);
  const { own } = known ?? mention;
  if (own && chosen === null) return { ...note, mentions: others };
  const mentions = [...others, { ...(known ?? mention), chosen }];
  return { ...note, mentions: mentions.sort((a, b) => a.start - b.start || b.end - a.end) };
}

/**
 * A note with decisions that it may not know; the candidates of its new marks are to come.
 * @param {Note} note @param {Decision[]} decisions @returns {Note}
 */
export function addDecisions(note, decisions) {
  for (const { document, start, end, label = "", chosen, concept, to } of decisions) {
    if (document !== note.id || to) continue;
    const text = [...note.text].slice(start, end).join("");
    if (placeOf(note, { start, end }) >= 0 || (chosen !== null && chosen !== NO_MENTION)) {
      note = put(note, newMention({ start, end, label, text, pending: true }, chosen, true), chosen);
      const mention = note.mentions[placeOf(note, { start, end })];
      if (mention && concept) note = fillMention(note, mention, { candidates: withCandidate(mention.candidates, candidateOf(concept)) });
    }
  }
  return note;
}

/** The place of the next open mention: after a place, else from the beginning. @param {Mention[]} mentions */
export function nextOpen(mentions, place) {
  const after = mentions.findIndex((one, at) => at > place && isOpen(one));
  return after >= 0 ? after : mentions.findIndex(isOpen);
}

/** The part of a text that is meant by a selection: without blanks around it. @param {string[]} characters */
export function trimSpan(characters, start, end) {
  while (start < end && !characters[start].trim()) start += 1;
  while (start < end && !characters[end - 1].trim()) end -= 1;
  return start < end ? [start, end] : null;
}

/** Pieces of a text whose characters are in the same mentions, the innermost one last. @param {Span[]} mentions */
export function cutText(length, mentions) {
  const cuts = new Set([0, length]);
  for (const one of mentions) cuts.add(one.start).add(one.end);
  const places = [...cuts].sort((a, b) => a - b);
  const order = mentions.map((one, place) => ({ ...one, place }))
    .sort((a, b) => a.start - b.start || b.end - a.end);
  /** @type {typeof order} */
  let active = [];
  let next = 0;
  const pieces = [];
  for (let at = 0; at + 1 < places.length; at += 1) {
    const [start, end] = [places[at], places[at + 1]];
    active = active.filter((one) => one.end > start);
    while (next < order.length && order[next].start <= start) active.push(order[next++]);
    const inside = [...active].sort((a, b) => (b.end - b.start) - (a.end - a.start));
    pieces.push({ start, end, inside: inside.map((one) => one.place) });
  }
  return pieces;
}

/**
 * The change of an item that a choice makes: an own mark that is not a mention goes.
 * @param {Item} item @param {string|null} chosen @param {Partial<Candidate>} [candidate] from a search
 * @returns {Change}
 */
export function changeOf(item, chosen, candidate) {
  const mention = { ...item.mention, candidates: withCandidate(item.mention.candidates, candidate && candidateOf(candidate)) };
  const after = mention.own && chosen === NO_MENTION ? null : chosen;
  return { ...item, mention, before: mention.chosen, after };
}

/** A candidate of which not all is known. @param {Partial<Candidate>} known @returns {Candidate} */
export const candidateOf = (known) =>
  ({ cui: "", name: "", alias: "", score: null, probability: null, tie: null, types: [], ...known });

/** @param {Candidate[]} candidates @param {Candidate|undefined} candidate */
function withCandidate(candidates, candidate) {
  if (!candidate || candidates.some((one) => one.cui === candidate.cui)) return candidates;
  return [...candidates.slice(0, 8), candidate];
}

/**
 * Applies changes to the note that is open, and adds what is to be written. In the changes that it returns,
 * `before` is what the note had: an item may be older.
 * @param {State} state @param {Change[]} changes @param {About} about @param {string} key
 */
function apply(state, changes, about, key) {
  let { note } = state;
  const { reviewer, kb, settles = false } = about;
  /** @type {Write[]} */
  const writes = [];
  const made = changes.map((change, number) => {
    const { document, mention, after } = change;
    let { before } = change;
    if (note && note.id === document && !settles) {
      const known = note.mentions[placeOf(note, mention)];
      if (known) before = known.chosen;
      note = put(note, mention, after);
      const chosen = mention.candidates.find((one) => one.cui === after);
      if (known) note = fillMention(note, mention, { candidates: withCandidate(known.candidates, chosen) });
    }
    if (document === null || before === after) return { ...change, before };
    const { start, end, label } = mention;
    const shown = mention.candidates.map(({ cui, score }) => ({ cui, score }));
    const concept = mention.candidates.find((one) => one.cui === after);
    writes.push({ key: `${key}-${number}`, reviewer, document, start, end, label, chosen: after, concept, before, kb, settles, shown });
    return { ...change, before };
  });
  return { state: { ...state, note, writes: [...state.writes, ...writes] }, keys: writes.map((one) => one.key), made };
}

/** @param {Note} note @param {Span} span @param {Partial<Mention>} found @returns {Note} */
function fillMention(note, span, found) {
  return { ...note, mentions: note.mentions.map((one) => (same(one, span) ? { ...one, ...found } : one)) };
}

/** A state that shows a mention; without it one near the one that was shown. @param {State} state @returns {State} */
function showAt(state, span, before) {
  const place = span ? placeOf(state.note, span) : -1;
  return { ...state, current: place >= 0 ? place : Math.min(before.current, (state.note?.mentions.length ?? 0) - 1) };
}

/** @type {{[type: string]: (state: State, event: any) => State}} */
const EVENTS = {
  opened(state, { note, current }) {
    const first = nextOpen(note.mentions, -1);
    const place = current ?? (first < 0 ? note.mentions.length && 0 : first);
    return { ...state, note, current: note.mentions.length ? place : -1 };
  },

  selected(state, { place }) {
    const count = state.note?.mentions.length ?? 0;
    return count ? { ...state, current: ((place % count) + count) % count } : state;
  },

  // After a decision on the mention that is shown, the next open one is shown.
  changed(before, { changes, about, key, show }) {
    const { state, keys, made } = apply(before, changes, about, key);
    const next = { ...state, undo: [...state.undo, { about, changes: made, keys }] };
    const shown = before.note?.mentions[before.current];
    const isDecided = shown && !about.settles && changes.some((one) =>
      one.document === before.note?.id && same(one.mention, shown));
    if (show || !isDecided) return showAt(next, show ?? shown, before);
    const mentions = next.note?.mentions ?? [];
    const removed = placeOf(next.note, shown) < 0 ? 1 : 0;
    const following = nextOpen(mentions, before.current - removed);
    return { ...next, current: following < 0 ? Math.min(before.current, mentions.length - 1) : following };
  },

  filled(state, { document, span, found }) {
    const known = state.note?.mentions[placeOf(state.note, span)];
    if (!state.note || state.note.id !== document || !known) return state;
    const chosen = known.candidates.find((one) => one.cui === known.chosen);
    const candidates = withCandidate(found.candidates ?? known.candidates, chosen);
    return { ...state, note: fillMention(state.note, span, { ...found, candidates, pending: false }) };
  },

  // Under the name that decided; a decision that was changed since then is taken back too.
  undone(before, { key }) {
    const step = before.undo.at(-1);
    if (!step) return before;
    const back = step.changes.map((one) => ({ ...one, before: one.after, after: one.before })).reverse();
    const { state } = apply({ ...before, undo: before.undo.slice(0, -1) }, back, step.about, key);
    const changed = step.about.settles ? undefined : step.changes.find((one) => one.document === before.note?.id);
    return showAt(state, changed?.mention ?? before.note?.mentions[before.current], before);
  },

  // What is noted on a mention is no decision, and is not undone with them.
  remarked(state, { span, remark, reviewer, key }) {
    const { note } = state;
    const mention = note?.mentions[placeOf(note, span)];
    if (!note || !mention) return state;
    const next = { ...state, note: fillMention(note, span, { remark }) };
    if (note.id === null) return next;
    const { start, end } = mention;
    const write = { to: REMARKS, key, reviewer, document: note.id, start, end, ...remark, before: mention.remark ?? null };
    return { ...next, writes: [...state.writes, /** @type {any} */ (write)] };
  },

  // A decision on something else than a note, which shows it by itself.
  queued(state, { writes }) {
    return { ...state, writes: [...state.writes, ...writes] };
  },

  written(state, { keys }) {
    const known = new Set(keys);
    return { ...state, writes: state.writes.filter((one) => !known.has(one.key)) };
  },

  // The service does not take them: what they said is not shown any more.
  refused(before, { keys }) {
    const known = new Set(keys);
    const gone = before.writes.filter((one) => known.has(one.key));
    const writes = before.writes.filter((one) => !known.has(one.key));
    let { note } = before;
    for (const one of gone.reverse()) {
      const mention = note?.mentions[placeOf(note, one)];
      if (!note || !mention || note.id !== one.document || one.settles || isUnsaved({ ...before, writes }, one)) continue;
      note = one.to ? fillMention(note, one, { remark: one.before }) : put(note, mention, one.before);
    }
    const undo = before.undo.filter((step) => !step.keys.some((key) => known.has(key)));
    return showAt({ ...before, note, writes, undo }, before.note?.mentions[before.current], before);
  },

  // What the same person decided in another tab.
  elsewhere(state, { decisions }) {
    if (!state.note) return state;
    const note = addDecisions(state.note, decisions.filter((one) => !isUnsaved(state, one)));
    return showAt({ ...state, note }, state.note.mentions[state.current], state);
  },
};

/** The state after an event. @param {State} state @param {Event} event @returns {State} */
export function update(state, event) {
  return EVENTS[event.type](state, event);
}
