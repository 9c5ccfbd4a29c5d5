// The state of the page, and the decisions on their way to the disk of the service: they
// are sent in order, all that wait together, and sent again until they are written.

import { get, post } from "./api.js";
import { say } from "./dom.js";
import { EMPTY, update } from "./state.js";

const TOGETHER = 500;  // decisions of a request
const FIRST_WAIT = 500, LONGEST_WAIT = 15_000;  // milliseconds before it is tried again
const SLOW = 1500;  // milliseconds after which decisions that are on their way are counted
const KEPT = "writes";  // not saved before a reload, in this tab

/** @type {import("./state.js").State} */
let state = { ...EMPTY, writes: JSON.parse(sessionStorage.getItem(KEPT) ?? "[]") };
/** @type {Set<(state: import("./state.js").State, before: import("./state.js").State) => void>} */
const listeners = new Set();
const others = new BroadcastChannel("decisions");
/** @type {Promise<void>|null} */
let running = null;
let wake = () => {};
let slow = 0;  // timer
let written = 0;  // requests of decisions that were answered

export function getState() {
  return state;
}

/** @param {import("./state.js").Event} event */
export function dispatch(event) {
  const before = state;
  state = update(state, event);
  if (state.writes !== before.writes) {
    sessionStorage.setItem(KEPT, JSON.stringify(state.writes));
    showSaved();
    flush();
  }
  for (const listener of listeners) listener(state, before);
}

/** @param {(state: import("./state.js").State, before: import("./state.js").State) => void} listener */
export function listen(listener) {
  listeners.add(listener);
}

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

/** @param {import("./state.js").Write[]} writes */
function sendWrites(writes) {
  const decisions = writes.map(({ before, ...one }) => one);
  return post("reviews/decisions", { decisions });
}

/**
 * Reads what has decisions in it; again, if some were written meanwhile, which it may lack.
 * @param {string} path
 */
export async function readDecisions(path) {
  for (;;) {
    const before = written;
    const found = await get(path);
    if (written === before) return found;
  }
}

/** @param {number} time in milliseconds; it ends sooner when the network is back */
function pause(time) {
  return new Promise((done) => {
    const timer = setTimeout(done, time);
    wake = () => { clearTimeout(timer); done(null); };
  });
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
    const writes = state.writes.slice(0, most);
    const keys = writes.map((one) => one.key);
    try {
      await sendWrites(writes);
      written += 1;
      dispatch({ type: "written", keys });
      others.postMessage(writes.filter((one) => !one.settles).map(({ reviewer, document, start, end, label, chosen }) =>
        ({ reviewer, document, start, end, label, chosen })));
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
        await pause(wait);
        wait = Math.min(2 * wait, LONGEST_WAIT);
      }
    }
  }
  running = null;
}

/** @param {() => string} reviewer */
export function start(reviewer) {
  others.addEventListener("message", ({ data }) => {
    const own = data.filter((/** @type {any} */ one) => one.reviewer === reviewer());
    if (own.length) dispatch({ type: "elsewhere", decisions: own });
  });
  document.body.dataset.unsaved = String(state.writes.length);
  addEventListener("online", () => wake());
  // The browser asks before it leaves with decisions that are not written.
  addEventListener("beforeunload", (event) => { if (state.writes.length) event.preventDefault(); });
  flush();
}
