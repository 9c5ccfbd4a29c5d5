// Queue: open mentions of all notes, equal ones together, the most uncertain first.

import { attempt, hasName } from "./api.js";
import { PAGE, listKeys, makeList, menu, nameWithCode, workbench } from "./bench.js";
import { queueBench } from "./deciding.js";
import { countOf, fill, make } from "./dom.js";
import { prepare } from "./notes.js";
import { around, where } from "./places.js";

/** @type {any} */
let view = null;

const queue = queueBench({ ...PAGE, draw, focusSearch: () => view.panel.search.focus() });

export async function render(main, info) {
  view = null;
  fill(main, make("h2", {}, "Queue"));
  if (info.why) { main.append(make("p", {}, info.why)); return null; }
  if (!hasName()) { main.append(make("p", {}, "The queue has what you have not decided yet. Write your name at the top.")); return null; }
  await attempt("", prepare);
  if (!main.querySelector("h2")) return null;
  const list = makeList(queue, ["Words", "Notes", "State"], "Queue", cellsOf);
  const counts = make("span", { id: "counts" });
  const bench = workbench(main, queue, {
    bar: [make("h2", {}, "Queue"), counts, make("span", { class: "dim" }, "One key decides all that are ticked."),
      menu("Keys", listKeys(queue))],
    pane: [list.element], focus: list.focus, threshold: info.threshold,
  });
  view = { ...bench, list, counts, leave() { view = null; } };
  await queue.load();
  list.focus();
  return view;
}

function draw(items) {
  if (!view) return;
  view.panel.draw(queue.item());
  view.list.draw(items);
  if (queue.shown().length) fill(view.counts, `${countOf(queue.left(), "mention")} open`);
  else fill(view.counts, "Nothing is open. ", make("a", { href: "#notes" }, "All notes"));
}

function cellsOf(group) {
  const { mention, places } = group;
  const open = places.filter((one) => one.chosen === null);
  const box = (place) => {
    if (open.length && place.chosen !== null) return make("span", {}, "✓");
    const field = make("input", { type: "checkbox", onchange: () => { place.taken = field.checked; } });
    field.checked = place.taken;
    return field;
  };
  const text = make("strong", { dir: "auto" }, mention.text);
  return [
    group !== queue.item() ? text : make("div", { class: "places" }, text, make("ul", {}, ...places.map((place) =>
      make("li", {}, make("label", { dir: "auto" }, box(place), around(place)), where(place))))),
    places.length === 1 ? places[0].name : `${places.length} times in ${countOf(new Set(places.map((one) => one.document)).size, "note")}`,
    mention.chosen !== null ? make("span", {}, nameWithCode(mention.chosen, mention), " ✓")
      : make("span", {}, mention.cui && nameWithCode(mention.cui, mention), mention.cui && ", ",
        open.length < places.length ? `${open.length} of ${places.length} open`
          : { tied: "several fit", sure: "sure", none: "no concept", unsure: "not sure" }[mention.certainty]),
  ];
}
