// The state of the page, and the decisions on their way to the disk of the service: they
// are sent in order, all that wait together, and sent again until they are written.

import { post, reviewer } from "./api.js";
import { say } from "./dom.js";
import { EMPTY, update } from "./state.js";

const TOGETHER = 500;  // decisions of a request
const FIRST_WAIT = 500, LONGEST_WAIT = 5000;  // milliseconds before it is tried again
const SLOW = 1500;  // milliseconds after which decisions that are on their way are counted
const KEPT = "writes";  // not saved before a reload, in this tab
const STEPS = "undo", MOST_STEPS = 50;  // what u takes back after a reload, in this tab

/** @type {import("./state.js").State} */
let state = { ...EMPTY, writes: readKept(KEPT), undo: readKept(STEPS) };
/** @typedef {(state: import("./state.js").State, before: import("./state.js").State, event: any) => void} Listener */
/** What looks at each new state. @type {Listener[]} */
const listeners = [];
const tabs = new BroadcastChannel("decisions");
/** @type {Promise<void>|null} */
let running = null;
let slow = 0;  // timer
let written = 0;  // requests of decisions that were answered

export const getState = () => state;

/** What this tab has kept. @param {string} name @returns {any[]} */
export function readKept(name) { return JSON.parse(sessionStorage.getItem(name) ?? "[]"); }

/** Keeps a list in this tab, unless it is too long for the browser. @param {string} name @param {any[]} list */
export function keep(name, list) {
  try { sessionStorage.setItem(name, JSON.stringify(list)); } catch { /* the page goes on without it */ }
}

/** @param {import("./state.js").Event} event */
export function dispatch(event) {
  const before = state;
  state = update(state, event);
  if (state.writes !== before.writes) {
    keep(KEPT, state.writes);  // if it cannot, it asks before it leaves
    showSaved();
    flush();
  }
  if (state.undo !== before.undo) keep(STEPS, state.undo.filter((step) => step.changes.every((one) => one.document)).slice(-MOST_STEPS));
  for (const listener of listeners) listener(state, before, event);
}

/** @param {Listener} given */
export const listen = (given) => { listeners.push(given); };

/** Says what is not saved; what is saved at once is not said again at each key. */
function showSaved(problem = "") {
  const element = document.getElementById("saved");
  const count = state.writes.length;
  document.body.dataset.unsaved = String(count);
  clearTimeout(slow);
  if (!element) return;
  const draw = () => {
    const text = count ? `${count} not saved${problem ? `: ${problem}` : " …"}` : "Saved";
    if (element.textContent !== text) element.textContent = text;
    element.classList.toggle("bad", Boolean(problem));
  };
  if (count && !problem && !element.classList.contains("bad")) slow = window.setTimeout(draw, SLOW);
  else draw();
}

/** Reads what has decisions in it; again, if some were written meanwhile, which it may lack. */
export async function readDecisions(read) {
  for (;;) {
    const before = written;
    const found = await read();
    if (written === before) return found;
  }
}

/** Sends what waits; the promise is fulfilled when nothing waits any more. */
export function flush() {
  if (!state.writes.length) return running ?? Promise.resolve();
  running ??= sendAll();
  return running;
}

async function sendAll() {
  let wait = FIRST_WAIT;
  let most = TOGETHER;
  while (state.writes.length) {
    const [{ to }] = state.writes;
    const others = state.writes.findIndex((one) => one.to !== to);
    const writes = state.writes.slice(0, others < 0 ? most : Math.min(most, others));
    const keys = writes.map((one) => one.key);
    try {
      await post(to ?? "reviews/decisions", { decisions: writes.map(({ to, before, concept, ...one }) => one) });
      written += 1;
      dispatch({ type: "written", keys });
      tabs.postMessage(writes.filter((one) => !one.settles).map(({ key, before, ...one }) => one));
      wait = FIRST_WAIT;
      most = TOGETHER;
    } catch (error) {
      const refused = error.status >= 400 && error.status < 500 && ![401, 403, 408, 429].includes(error.status);
      if (refused && writes.length > 1) {
        most = 1;  // one of them is refused, not all
      } else if (refused) {
        dispatch({ type: "refused", keys });
        say(`A decision was not taken: ${error.message}`, true);
      } else {
        showSaved(error.message);
        await new Promise((done) => setTimeout(done, wait));
        wait = Math.min(2 * wait, LONGEST_WAIT);
      }
    }
  }
  running = null;
}

tabs.addEventListener("message", ({ data }) => {
  const own = data.filter((one) => one.reviewer === reviewer());
  if (own.length) dispatch({ type: "elsewhere", decisions: own });
});
document.body.dataset.unsaved = String(state.writes.length);
// The browser asks before it leaves with decisions that are not written.
addEventListener("beforeunload", (event) => { if (state.writes.length) event.preventDefault(); });
flush();
