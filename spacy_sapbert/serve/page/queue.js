// Queue: open mentions of all notes, equal ones together, the most uncertain first.

import { attempt, hasName } from "./api.js";
import { candidatesPanel } from "./candidates.js";
import { queueBench } from "./deciding.js";
import { countOf, fill, make } from "./dom.js";
import { PAGE } from "./note.js";
import { prepare } from "./notes.js";
import { flush } from "./session.js";

const LONGEST_WAIT = 3000;  // milliseconds for decisions that are not written yet
/** @type {any} */
let view = null;

const queue = queueBench({
  ...PAGE,
  service: {
    ...PAGE.service,
    async queue(who) {
      await Promise.race([flush(), PAGE.pause(LONGEST_WAIT)]);  // what is on its way is not open any more
      return PAGE.service.queue(who);
    },
  },
  draw,
  focusSearch: () => view.panel.search.focus(),
});

/** @param {HTMLElement} main @param {any} info */
export async function render(main, info) {
  view = null;
  fill(main, make("h2", {}, "Queue"));
  if (info.why) { main.append(make("p", {}, info.why)); return; }
  if (!hasName()) { main.append(make("p", {}, "The queue has what you have not decided yet. Write your name at the top.")); return; }
  await attempt("", prepare);
  if (!main.querySelector("h2")) return;
  view = {
    main,
    panel: candidatesPanel(queue, focus, info.threshold),
    places: make("div", { class: "places", tabindex: 0, role: "group", "aria-label": "Places" }),
    counts: make("span", { id: "counts" }),
  };
  fill(main, make("div", { class: "bench" },
    make("div", { class: "bar" }, make("h2", {}, "Queue"), view.counts,
      make("span", { class: "dim" }, "One key decides all that are ticked.")),
    make("div", { class: "pane" }, view.places),
    make("div", { class: "side" }, view.panel.element)));
  await queue.load();
  focus();
}

function draw() {
  if (!view) return;
  const group = queue.item();
  const { left, rest } = queue.view;
  fill(view.counts, group ? `${countOf(left, "mention")} open, ${countOf(rest, "name")}` : "");
  view.panel.draw(group);
  if (!group) {
    fill(view.places, make("p", {}, ...(queue.busy() ? ["Reading …"] : ["Nothing is open. ", make("a", { href: "#notes" }, "All notes")])));
    return;
  }
  const title = make("h3", {});
  const count = () => {
    const taken = group.places.filter((/** @type {any} */ one) => one.taken !== false).length;
    const times = group.places.length === 1 ? `once, in “${group.places[0].name}”`
      : `${group.places.length} times in ${countOf(group.documents, "note")}`;
    fill(title, `“${group.mention.text}”, ${times}${taken < group.places.length ? `; ${taken} ticked` : ""}`);
  };
  const boxes = group.places.map((/** @type {any} */ place) => {
    const box = make("input", { type: "checkbox" });
    box.checked = place.taken ?? true;
    box.addEventListener("change", () => { place.taken = box.checked; count(); });
    return make("li", {}, make("label", { dir: "auto" }, box, make("span", {},
      place.before.replace(/\s+/g, " "), make("strong", {}, place.text), place.after.replace(/\s+/g, " "))),
      make("a", { href: `#note/${place.document}/${place.start}`, class: "dim", title: place.name }, place.name));
  });
  count();
  fill(view.places, title, make("ul", {}, ...boxes));
}

export function leave() {
  view = null;
}

export function focus() {
  view?.places.focus({ preventScroll: true });
}

/** Where keys act. */
export const bench = () => (view ? queue : null);
export { press } from "./keys.js";
