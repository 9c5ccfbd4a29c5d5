// Agree: where reviewers differ, and what holds there.

import { attempt, get, hasName, reviewer } from "./api.js";
import { PAGE, listKeys, makeList, menu, nameWithCode, workbench } from "./bench.js";
import { listBench, undoLast, writeStep } from "./deciding.js";
import { fill, make, say, select } from "./dom.js";
import { around, where } from "./places.js";
import { flush } from "./session.js";
import { NIL, NO_MENTION, candidateOf, changeOf, isOpen, newMention } from "./state.js";

let filter = { document: "", reviewer: "", open: "true" };

export async function render(main, info) {
  fill(main, make("h2", {}, "Agree"));
  if (info.why) { main.append(make("p", {}, info.why)); return null; }
  await flush();
  const found = await attempt("Reading …", async () => {
    const [{ documents }, reviewers, differences] = await Promise.all(
      ["reviews/documents", "reviews/reviewers", "reviews/differences"].map(get));
    return { documents, reviewers, differences };
  });
  if (!found) return null;
  const { differences, reviewers } = found;
  const concepts = new Map(differences.concepts.map((one) => [one.cui, one]));
  const { document: note, reviewer: who, open } = filter;
  const items = differences.places.filter(({ place, choices, agreed }) =>
    (!open || agreed === null) && (!note || place.document === note) && (!who || who in choices))
    .map((one) => itemOf(one, concepts));
  const bench = listBench({
    say,
    draw(changed) {
      const open = items.filter((one) => isOpen(one.mention)).length;
      fill(left, items.length ? `${open} of ${items.length} are not settled` : "Nowhere.");
      place.panel.draw(bench.item());
      list.draw(changed);
    },
    focusSearch: () => place.panel.search.focus(),
    undoEarlier() {
      const where = undoLast(PAGE);
      if (where) dispatchEvent(new Event("hashchange"));
      return where;
    },
    decide(item, chosen, candidate) {
      if (!hasName() || item.mention.chosen === chosen) return null;
      const { mention, words } = item;
      const changed = changeOf(item, chosen, candidate);
      const back = writeStep(PAGE, [changed], { reviewer: reviewer(), kb: info.digest, settles: true });
      Object.assign(item, { mention: { ...changed.mention, chosen }, words: "Settled." });
      return () => back() && Boolean(Object.assign(item, { mention, words }));
    },
    more: { noMention: (item) => item && bench.choose(item, NO_MENTION) },
  });
  const list = makeList(bench, ["Where", "Answers", "Agreed"], "Differences", ({ place: one, choices, mention }) => [
    make("span", {}, where(one), ": ", around(one)),
    make("div", {}, ...answersOf(choices).map(([chosen, people]) =>
      make("div", {}, nameWithCode(chosen, mention), make("span", { class: "dim" }, `: ${people.join(", ")}`)))),
    isOpen(mention) ? "" : make("span", {}, nameWithCode(mention.chosen, mention), " ✓")]);
  const left = make("span", { role: "status" });
  /** @type {[keyof typeof filter, string, string[][]][]} */
  const filters = [
    ["open", "Show", [["true", "what is not settled"], ["", "all"]]],
    ["document", "Note", [["", "all"], ...found.documents.map((one) => [one.id, one.name])]],
    ["reviewer", "Reviewer", [["", "all"], ...reviewers.map((name) => [name, name])]],
  ];
  const narrow = (key, value) => {
    filter = { ...filter, [key]: value };
    dispatchEvent(new Event("hashchange"));
  };
  const place = workbench(main, bench, {
    bar: [make("h2", {}, "Where reviewers differ"), left, ...filters.map(([key, text, options]) =>
      select(`of-${key}`, text, options, filter[key], (value) => narrow(key, value))), menu("Keys", listKeys(bench))],
    pane: [list.element], focus: list.focus, threshold: info.threshold,
  });
  bench.fill(items);
  return place;
}

/** Who has chosen what, the commonest first; whoever has done the note without it says that it is no mention. */
function answersOf(choices) {
  const answers = new Map();
  for (const who of Object.keys(choices).sort()) {
    const chosen = choices[who] ?? NO_MENTION;
    answers.set(chosen, [...answers.get(chosen) ?? [], who]);
  }
  return [...answers].sort(([, a], [, b]) => b.length - a.length);
}

/** A difference whose candidates are what people chose. */
function itemOf({ place, choices, agreed }, concepts) {
  const cuis = [...new Set([...Object.values(choices), agreed])].filter((cui) => cui && cui !== NIL && cui !== NO_MENTION);
  const candidates = cuis.map((cui) => candidateOf({
    name: cui, ...concepts.get(cui),
    alias: Object.keys(choices).filter((who) => choices[who] === cui).join(", "),
  }));
  return {
    document: place.document, name: place.name, place, choices,
    mention: newMention({ ...place, certainty: "tied", candidates }, agreed, false),
    words: agreed === null ? "They differ: choose what holds." : "Settled.",
  };
}
