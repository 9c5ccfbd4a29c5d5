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
 * @typedef {object} Mention
 * @property {number} start in characters (code points), as `end`
 * @property {number} end
 * @property {string} text
 * @property {string} label
 * @property {string|null} cui what is proposed; null = no concept
 * @property {string|null} note why there is none
 * @property {boolean} [proposed] the proposal comes from a file
 * @property {Candidate[]} candidates
 * @property {string|null} chosen what a person chose; null = nothing yet
 * @property {boolean} own a person has marked it
 *
 * @typedef {object} Note
 * @property {string|null} id null = it is not kept
 * @property {string} name
 * @property {string} text
 * @property {string} kb digest of the knowledge base
 * @property {string[]} done who has done it
 * @property {Mention[]} mentions
 *
 * @typedef {object} Write a decision that is not written yet
 * @property {string} key
 * @property {string} reviewer
 * @property {string} document
 * @property {number} start
 * @property {number} end
 * @property {string} label
 * @property {string|null} chosen
 * @property {string|null} before
 * @property {string} kb
 * @property {boolean} settles it says what holds, and is no answer of the reviewer
 * @property {{cui: string, score: number|null}[]} shown
 *
 * @typedef {object} Change of one mention, which can be undone
 * @property {Mention} mention
 * @property {string|null} before
 * @property {string|null} after
 * @property {boolean} added the change has marked it
 * @property {boolean} removed the change has removed it
 *
 * @typedef {object} Step what one undo takes back
 * @property {string|null} document
 * @property {string} name of the document
 * @property {string} reviewer
 * @property {string} kb
 * @property {boolean} settles as of its writes; the answers of the note stay
 * @property {Change[]} changes
 * @property {string[]} keys of its writes
 *
 * @typedef {object} State
 * @property {Note|null} note
 * @property {number} current place of the chosen mention; -1 = none
 * @property {Step[]} undo
 * @property {Write[]} writes
 *
 * @typedef {{type: "opened", note: Note, current?: number}
 *   | {type: "selected", place: number}
 *   | {type: "decided", chosen: string, candidate?: Partial<Candidate>, reviewer: string, key: string}
 *   | {type: "together", places: Place[], chosen: string, reviewer: string, key: string, kb: string, candidates: Candidate[], settles?: boolean}
 *   | {type: "marked", mention: Mention}
 *   | {type: "moved", mention: Mention, reviewer: string, key: string}
 *   | {type: "undone", key: string}
 *   | {type: "written", keys: string[]}
 *   | {type: "refused", keys: string[]}
 *   | {type: "elsewhere", decisions: {document: string, start: number, end: number, chosen: string|null}[]}} Event
 *
 * @typedef {{document: string, name: string, start: number, end: number, label: string, chosen?: string|null}} Place
 */

export const NIL = "NIL";
export const NO_MENTION = "NO_MENTION";
const SURE = 0.8;  // least probability of a sure link
const CLEAR_MARGIN = 0.1;  // of two scores, where there are no probabilities

/** @type {State} */
export const EMPTY = { note: null, current: -1, undo: [], writes: [] };

/**
 * @param {Partial<Mention> & {start: number, end: number, text: string}} found
 * @param {string|null} chosen
 * @param {boolean} own
 * @returns {Mention}
 */
export function newMention(found, chosen = null, own = false) {
  return { label: "", cui: null, note: null, candidates: [], ...found, chosen, own };
}

/**
 * How far a proposal can be trusted: "none" = no concept is proposed.
 * @param {Mention} mention
 * @returns {"sure" | "unsure" | "tied" | "none"}
 */
export function certainty(mention) {
  if (mention.cui === null) return "none";
  const first = mention.candidates.find((one) => one.cui === mention.cui);
  if (!first) return "unsure";
  const others = mention.candidates.filter((one) => one !== first).map((one) => one.score ?? -1);
  const best = Math.max(-1, ...others);
  const score = first.score ?? -1;
  if (mention.proposed) return score >= best ? "sure" : "unsure";
  if (first.probability !== null && first.probability !== undefined) {
    return first.probability >= SURE ? "sure" : "unsure";
  }
  if (first.tie || score === best) return "tied";
  if (mention.note) return "unsure";
  return score === 1 || score - best >= CLEAR_MARGIN ? "sure" : "unsure";
}

/**
 * What Enter means: what is shown. Null = a person has to say which.
 * @param {Mention} mention
 * @returns {string|null}
 */
export function shownChoice(mention) {
  if (mention.chosen !== null) return mention.chosen;
  const trust = certainty(mention);
  if (trust === "none") return NIL;
  return trust === "sure" ? mention.cui : null;
}

/** @param {Note|null} note */
export function progress(note) {
  const mentions = note?.mentions ?? [];
  const open = mentions.filter((one) => one.chosen === null);
  const unsure = open.filter((one) => ["unsure", "tied"].includes(certainty(one)));
  return { total: mentions.length, decided: mentions.length - open.length, unsure: unsure.length };
}

/**
 * @param {State} state
 * @param {Mention} mention
 */
export function isUnsaved(state, mention) {
  return state.writes.some((one) => !one.settles && isAt(one, state.note?.id ?? null, mention));
}

/**
 * @param {{document: string, start: number, end: number}} one
 * @param {string|null} document
 * @param {{start: number, end: number}} span
 */
function isAt(one, document, span) {
  return one.document === document && one.start === span.start && one.end === span.end;
}

/**
 * A note as it will be when the decisions of a reviewer that still wait are written.
 * @param {Note} note as the service has it
 * @param {Write[]} writes
 * @param {string} reviewer
 * @returns {Note}
 */
export function addWaiting(note, writes, reviewer) {
  for (const one of writes) {
    if (one.document !== note.id || one.reviewer !== reviewer || one.settles) continue;
    const known = note.mentions.some((mention) => isAt(one, note.id, mention));
    if (known) {
      note = mapMentions(note, (mention) => (isAt(one, note.id, mention) ? { ...mention, chosen: one.chosen } : mention));
    } else if (one.chosen !== null && one.chosen !== NO_MENTION) {
      const { start, end, label } = one;
      note = insert(note, newMention({ start, end, label, text: [...note.text].slice(start, end).join("") }, one.chosen, true));
    }
  }
  return note;
}

/**
 * The place of the next open mention: after a place, else from the beginning.
 * @param {Mention[]} mentions
 * @param {number} place
 */
export function nextOpen(mentions, place) {
  const open = (/** @type {Mention} */ one) => one.chosen === null;
  const after = mentions.findIndex((one, at) => at > place && open(one));
  return after >= 0 ? after : mentions.findIndex(open);
}

/**
 * The part of a text that is meant by a selection: without blanks around it.
 * @param {string[]} characters
 * @param {number} start
 * @param {number} end
 * @returns {[number, number]|null}
 */
export function trimSpan(characters, start, end) {
  while (start < end && !characters[start].trim()) start += 1;
  while (start < end && !characters[end - 1].trim()) end -= 1;
  return start < end ? [start, end] : null;
}

/**
 * Pieces of a text whose characters are in the same mentions, the innermost one last.
 * @param {number} length of the text
 * @param {{start: number, end: number}[]} mentions
 * @returns {{start: number, end: number, inside: number[]}[]}
 */
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
 * @param {Mention} mention
 * @param {{reviewer: string, document: string, kb: string, settles: boolean, key: string}} about
 * @param {string|null} chosen
 * @param {string|null} before
 * @returns {Write}
 */
function makeWrite(mention, about, chosen, before) {
  const { start, end, label } = mention;
  const shown = mention.candidates.map(({ cui, score }) => ({ cui, score }));
  return { ...about, start, end, label, chosen, before, shown };
}

/**
 * @param {Note} note
 * @param {(mention: Mention) => Mention} change
 * @returns {Note}
 */
function mapMentions(note, change) {
  return { ...note, mentions: note.mentions.map(change) };
}

/**
 * @param {Note} note
 * @param {Mention} mention
 * @returns {Note}
 */
function insert(note, mention) {
  const mentions = [...note.mentions, mention]
    .sort((a, b) => a.start - b.start || b.end - a.end);
  return { ...note, mentions };
}

/**
 * @param {{start: number, end: number}} a
 * @param {{start: number, end: number}} b
 */
const same = (a, b) => a.start === b.start && a.end === b.end;

/**
 * Applies changes to the note on the page, and adds what is to be written.
 * @param {State} state
 * @param {Step} step
 * @param {{mention: Mention, chosen: string|null, added?: boolean, removed?: boolean}[]} wanted
 * @param {string} key
 * @returns {State}
 */
function apply(state, step, wanted, key) {
  let { note } = state;
  /** @type {Change[]} */
  const changes = [];
  /** @type {Write[]} */
  const writes = [];
  wanted.forEach(({ mention, chosen, added = false, removed = false }, number) => {
    const before = mention.chosen;
    changes.push({ mention, before, after: chosen, added, removed });
    if (note && note.id === step.document && !step.settles) {
      if (added) note = insert(note, { ...mention, chosen });
      else if (removed) {
        note = { ...note, mentions: note.mentions.filter((one) => !same(one, mention)) };
      } else note = mapMentions(note, (one) => (same(one, mention) ? { ...one, chosen } : one));
    }
    if (step.document !== null && chosen !== before) {
      const { reviewer, document, kb, settles } = step;
      const about = { reviewer, document, kb, settles, key: `${key}-${number}` };
      writes.push(makeWrite(mention, about, chosen, before));
    }
  });
  const keys = writes.map((one) => one.key);
  return {
    ...state, note, writes: [...state.writes, ...writes],
    undo: [...state.undo, { ...step, changes, keys }],
  };
}

/**
 * @param {State} state
 * @param {string} reviewer
 * @returns {Step}
 */
function stepOf(state, reviewer) {
  const { id = null, name = "", kb = "" } = state.note ?? {};
  return { document: id, name, reviewer, kb, settles: false, changes: [], keys: [] };
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

  // The mention is the chosen one at this moment; the next key is of the next mention.
  decided(state, { chosen, candidate, reviewer, key }) {
    let mention = state.note?.mentions[state.current];
    if (!mention || !state.note) return state;
    if (candidate && !mention.candidates.some((one) => one.cui === chosen)) {
      const found = { probability: null, tie: null, ...candidate };
      const wider = { ...mention, candidates: [...mention.candidates.slice(0, 8), found] };
      mention = wider;
      const note = mapMentions(state.note, (one) => (same(one, wider) ? wider : one));
      state = { ...state, note };
    }
    // An own mark that is not a mention is removed.
    const removed = mention.own && chosen === NO_MENTION;
    const wanted = { mention, chosen: removed ? null : chosen, removed };
    const next = apply(state, stepOf(state, reviewer), [wanted], key);
    const following = nextOpen(next.note?.mentions ?? [], state.current);
    const last = (next.note?.mentions.length ?? 0) - 1;
    return { ...next, current: following < 0 ? Math.min(state.current, last) : following };
  },

  // Equal mentions of several notes get one answer; each note is a step of its own.
  together(state, { places, chosen, reviewer, key, kb, candidates, settles = false }) {
    let next = state;
    places.forEach((/** @type {any} */ place, /** @type {number} */ number) => {
      const mention = newMention({ ...place, candidates }, place.chosen ?? null);
      const step = { document: place.document, name: place.name, reviewer, kb, settles, changes: [], keys: [] };
      next = apply(next, step, [{ mention, chosen }], `${key}-${number}`);
    });
    const added = next.undo.slice(state.undo.length);
    const writes = next.writes.slice(state.writes.length);
    // One undo takes all of them back.
    const whole = { ...added[0], changes: [], keys: writes.map((one) => one.key), group: added };
    return { ...next, undo: [...state.undo, whole] };
  },

  marked(state, { mention }) {
    if (!state.note || state.note.mentions.some((one) => same(one, mention))) return state;
    const note = insert(state.note, mention);
    const current = note.mentions.findIndex((one) => same(one, mention));
    const change = { mention, before: null, after: null, added: true, removed: false };
    const step = { ...stepOf(state, ""), changes: [change] };
    return { ...state, note, current, undo: [...state.undo, step] };
  },

  // Another span in place of the chosen mention: the old one is not a mention any more.
  moved(state, { mention, reviewer, key }) {
    const old = state.note?.mentions[state.current];
    if (!old || !state.note || state.note.mentions.some((one) => same(one, mention))) return state;
    const chosen = old.own ? null : NO_MENTION;
    const next = apply(state, stepOf(state, reviewer), [
      { mention: old, chosen, removed: true }, { mention, chosen: null, added: true },
    ], key);
    const current = next.note?.mentions.findIndex((one) => same(one, mention)) ?? -1;
    return { ...next, current };
  },

  undone(state, { key }) {
    const step = /** @type {any} */ (state.undo.at(-1));
    if (!step) return state;
    let next = { ...state, undo: state.undo.slice(0, -1) };
    const steps = step.group ?? [step];
    steps.forEach((/** @type {Step} */ one, /** @type {number} */ at) => {
      next = takeBack(next, one, `${key}-${at}`);
    });
    return next;
  },

  written(state, { keys }) {
    const known = new Set(keys);
    return { ...state, writes: state.writes.filter((one) => !known.has(one.key)) };
  },

  // The service does not take them: what they said is not shown any more.
  refused(state, { keys }) {
    const known = new Set(keys);
    const gone = state.writes.filter((one) => known.has(one.key));
    const writes = state.writes.filter((one) => !known.has(one.key));
    let { note } = state;
    for (const one of gone) {
      if (!note || one.settles || writes.some((other) => isAt(other, one.document, one))) continue;
      if (note.id === one.document) {
        note = mapMentions(note, (mention) =>
          (same(mention, one) ? { ...mention, chosen: one.before } : mention));
      }
    }
    const undo = state.undo.filter((step) => !step.keys.some((key) => known.has(key)));
    return { ...state, note, writes, undo };
  },

  // What the same person decided in another tab.
  elsewhere(state, { decisions }) {
    if (!state.note) return state;
    const { id } = state.note;
    const found = (/** @type {Mention} */ one) =>
      decisions.findLast((/** @type {any} */ each) => isAt(each, id, one));
    const note = mapMentions(state.note, (one) => {
      const other = found(one);
      return other && !isUnsaved(state, one) ? { ...one, chosen: other.chosen } : one;
    });
    return { ...state, note };
  },
};

/**
 * Takes back the changes of a step, under the name that made them.
 * @param {State} state
 * @param {Step} step
 * @param {string} key
 * @returns {State}
 */
function takeBack(state, step, key) {
  const isShown = state.note !== null && state.note.id === step.document && !step.settles;
  let { note, current } = state;
  /** @type {Write[]} */
  const writes = [];
  step.changes.forEach(({ mention, before, after, added, removed }, number) => {
    const known = isShown ? note?.mentions.find((one) => same(one, mention)) : null;
    const now = known ? known.chosen : after;
    if (note && isShown) {
      if (added) note = { ...note, mentions: note.mentions.filter((one) => !same(one, mention)) };
      else if (removed) note = insert(note, { ...mention, chosen: before });
      else note = mapMentions(note, (one) => (same(one, mention) ? { ...one, chosen: before } : one));
    }
    if (step.document !== null && step.reviewer && now !== before) {
      const { reviewer, document, kb, settles } = step;
      const about = { reviewer, document, kb, settles, key: `${key}-${number}` };
      writes.push(makeWrite(mention, about, before, now));
    }
  });
  if (note && isShown) {
    const first = step.changes[0]?.mention;
    const place = first ? note.mentions.findIndex((one) => same(one, first)) : -1;
    current = place >= 0 ? place : Math.min(current, note.mentions.length - 1);
  }
  return { ...state, note, current, writes: [...state.writes, ...writes] };
}

/**
 * The state after an event.
 * @param {State} state
 * @param {Event} event
 * @returns {State}
 */
export function update(state, event) {
  return EVENTS[event.type](state, event);
}
