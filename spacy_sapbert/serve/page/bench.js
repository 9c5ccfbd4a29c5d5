// Where items are decided: a text or a list, and beside it the panel with what is proposed
// for the current item, other concepts, and the keys for them.

import { get, hasName, post, randomKey, reviewer } from "./api.js";
import { codeOf } from "./codes.js";
import { nameOf } from "./deciding.js";
import { fill, growingTable, make, say, strength } from "./dom.js";
import { commandsOf, press } from "./keys.js";
import { showConcept } from "./look.js";
import { searchField } from "./search.js";
import { dispatch, flush, getState, readDecisions } from "./session.js";
import { NIL, NO_MENTION, isOpen } from "./state.js";
import { contexts, explainNote, nameTypes } from "./words.js";

/** What the commands need of the page. */
export const PAGE = {
  getState, dispatch, say, contexts,
  reviewer: () => (hasName() ? reviewer() : ""),
  key: randomKey,
  pause: (time) => new Promise((done) => setTimeout(done, time)),
  service: {
    link: async (text, filter) => {
      const { start, end, ...found } = (await post("mentions", { mentions: [text], ...filter })).mentions[0];
      return found;
    },
    occurrences: (text, item, who) =>
      readDecisions(() => post("reviews/occurrences", { text, document: item.document, reviewer: who })),
    done: (id, who, done) => post(`reviews/documents/${id}/done`, { reviewer: who, done }),
    next: async (who) => {
      const { documents } = await readDecisions(() => get(`reviews/documents?reviewer=${encodeURIComponent(who)}`));
      return documents.find((one) => !one.done.includes(who))?.id ?? null;
    },
    queue: async (who) => {
      await flush();  // what is on its way is not open any more
      return get(`reviews/queue?reviewer=${encodeURIComponent(who)}`);
    },
  },
};

/** What is chosen, in words, with the id and code of a concept. @param {string} chosen */
export function nameWithCode(chosen, mention) {
  const isConcept = chosen !== NIL && chosen !== NO_MENTION;
  return make("span", { dir: "auto" }, nameOf(chosen, mention), isConcept && " ", isConcept && codeOf(chosen));
}

/** What is said of a mention in one sentence. @param {import("./state.js").Mention} mention */
function sentence(mention, threshold) {
  if (mention.chosen === NO_MENTION) return "You said: not a mention.";
  if (mention.chosen === NIL) return "You said: no concept of this vocabulary.";
  if (!isOpen(mention)) return "Decided.";
  if (mention.pending) return "Its candidates are looked up …";
  const [first, second] = mention.candidates;
  const why = explainNote(mention.note, first, threshold);
  if (mention.known === false) return `The file has ${mention.cui}, which this vocabulary does not have.`;
  if (mention.certainty === "none") return `No match in this vocabulary. ${why}`;
  if (mention.certainty === "sure") return mention.proposed ? "Proposed by the file." : why;
  if (mention.certainty === "tied" && second) return `Several concepts fit: it also means ${second.name}.`;
  return why ? `Not sure: ${why}` : "Not sure: choose with 1–9, or 0 for none.";
}

/** The one way in which candidates are shown; `leave` is called when the search ends. */
function candidatesPanel(bench, leave, threshold) {
  const about = make("aside", { class: "about", "aria-label": "About a concept" });
  const showAbout = async (cui) => {
    await showConcept(about, cui);
    about.append(make("p", {}, make("button", { type: "button", onclick: () => fill(about) }, "Close ", make("kbd", {}, "i"))));
  };
  const list = make("ol", { class: "candidates" });
  const results = make("ul", { class: "candidates", "aria-label": "Found concepts" });
  const head = make("h2", { dir: "auto" });
  const words = make("p", { class: "words" });
  const more = make("div", { class: "offer", role: "status" });
  const element = make("section", { class: "panel", "aria-label": "Candidates" });
  let item = null;
  let shown = "";
  const choose = (of, cui, candidate) => {
    bench.choose(of, cui, candidate);
    search.reset();  // what was found is not shown any more, also if the mention stays
    leave();
  };

  const button = (cui, key, candidate, ...children) => {
    const of = item;
    return make("button", {
      type: "button", class: "choose", "data-cui": cui,
      "aria-pressed": String(item.mention.chosen === cui), onclick: () => choose(of, cui, candidate),
    }, key && make("kbd", {}, key), ...children);
  };
  const line = (one, place, isFound = false) => {
    const key = String(place + 1);
    const chance = strength(one, !isFound && typeof item.mention.candidates[0]?.probability === "number");
    const alias = one.alias === one.name ? "" : one.alias;
    return make("li", {},
      button(one.cui, key, one, " ",
        make("span", { class: "name", dir: "auto" }, one.name), " ", chance, " ",
        make("span", { class: "dim alias" }, codeOf(one.cui), alias && " · ", make("bdi", {}, alias), one.types.length ? " · " : "", nameTypes(one.types))),
      make("button", {
        type: "button", class: "quiet more", "aria-label": `About ${one.name}`, title: `About ${one.name}`,
        onclick: () => showAbout(one.cui),
      }, "…"));
  };
  const answer = (cui, key, text) =>
    make("li", { class: "answer" }, button(cui, key, undefined, " ", make("span", { class: "name" }, text)));
  const search = searchField({
    id: "search", label: "Other concept", item: () => item, onleave: leave, onsearch: bench.search,
    onfound: (concepts) => {
      list.hidden = concepts !== null;
      fill(results, ...(concepts ?? []).map((one, place) => line(one, place, true)), concepts?.length === 0 && make("li", { class: "dim" }, "Nothing found."));
    },
    onchoose: (concept, of) => choose(of, concept.cui, concept),
  });
  const undo = make("button", { type: "button", onclick: bench.more.undo }, "Undo ", make("kbd", {}, "u"));
  fill(element, head, words, more, search.element, results, list, make("div", { class: "row tools" }, undo));

  return {
    element, about, search: search.field,
    /** Shows all about what is chosen, else about the first candidate; or shows it no more. */
    toggleAbout() {
      const { chosen, candidates = [] } = item?.mention ?? {};
      const cui = (candidates.find((one) => one.cui === chosen) ?? candidates[0])?.cui;
      if (about.childNodes.length) fill(about);
      else if (cui) showAbout(cui);
      else say("There is no candidate.");
    },
    /** While found concepts are shown, digits choose one of them; returns whether a key did that. */
    press({ key, repeat = false }) {
      if (!list.hidden || !/^[1-9]$/.test(key)) return false;
      const found = /** @type {HTMLElement|undefined} */ (results.querySelectorAll(".choose")[Number(key) - 1]);
      if (bench.busy()) say(`This key did nothing: ${bench.busy()}`);
      else if (!found) say(`Nothing with the number ${key} was found.`);
      else if (!repeat) found.click();
      return true;
    },
    /** @param {any} next @param {any[]} offer what can be done besides */
    draw(next, offer = []) {
      item = next;
      element.hidden = !item;
      fill(more, ...offer);
      if (!item) return;
      const { mention } = item;
      const now = `${item.document} ${mention.start} ${mention.end} ${mention.text}`;
      if (now !== shown) {
        fill(about);
        search.reset();
      }
      shown = now;
      fill(head, mention.text);
      fill(words, item.words ?? sentence(mention, threshold));
      fill(list, ...mention.candidates.slice(0, 9).map((one, place) => line(one, place)),
        answer(NIL, "0", "no concept in this vocabulary"),
        bench.more.noMention && answer(NO_MENTION, "x", "not a mention"));
    },
  };
}

/**
 * Lays out what is decided, with the panel beside it; what it returns is where keys act.
 * @param {HTMLElement} main @param {any} bench @param {{[part: string]: any}} parts
 */
export function workbench(main, bench, { bar, pane, side = [], focus, threshold }) {
  const panel = candidatesPanel(bench, focus, threshold);
  bench.more.about = panel.toggleAbout;
  const element = make("div", { class: "bench" }, make("div", { class: "bar" }, ...bar),
    make("div", { class: "pane" }, ...pane), panel.about, make("div", { class: "side" }, panel.element, ...side));
  panel.draw(null);
  fill(main, element);
  return { bench, element, panel, focus, press: (event, at) => panel.press(event) || press(event, bench, at) };
}

/** The keys of a part of the page, to be read. */
export function listKeys(bench) {
  return make("p", {}, ...commandsOf(bench).flatMap((one) => [make("kbd", {}, one.shown), ` ${one.text}  `]));
}

/** A menu that is opened by its name. */
export const menu = (name, ...children) =>
  make("details", { class: "menu" }, make("summary", {}, name), make("div", {}, ...children));

/** The items of a `listBench` as rows, of which the current one has the focus. */
export function makeList(bench, head, label, cellsOf) {
  const rows = new Map();
  const { element, row, draw } = growingTable(head, label, cellsOf, { class: "cards keys list" }, (made, item) => {
    rows.set(item, made);
    if (item === bench.item()) {
      made.setAttribute("aria-current", "true");
      made.tabIndex = 0;
    }
    made.addEventListener("click", ({ target }) => {
      if (!(/** @type {Element} */ (target).closest("a, button, label"))) bench.show(item);
    });
  });
  const focus = () => {
    const item = bench.item();
    for (let more; !rows.has(item) && (more = element.querySelector(".more button"));) more.click();
    rows.get(item)?.focus({ preventScroll: true });
    rows.get(item)?.scrollIntoView({ block: "nearest" });
  };
  return {
    element, focus,
    /** Draws some items again, or all. @param {any[]} [items] */
    draw(items) {
      const hasFocus = element.contains(document.activeElement);
      for (const item of items ?? []) rows.get(item)?.replaceWith(row(item));
      if (!items) {
        rows.clear();
        draw(bench.shown());
      }
      if (hasFocus) focus();
      else rows.get(bench.item())?.scrollIntoView({ block: "nearest" });
    },
  };
}
