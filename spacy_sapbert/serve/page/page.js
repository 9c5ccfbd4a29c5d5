// The parts of the page, chosen by the address after "#".

import { attempt, get, nameField, reviewer } from "./api.js";
import { fill, make, say } from "./dom.js";
import * as notes from "./notes.js";

/** Title and module of each part; only that of the notes is needed at first. @type {{[part: string]: [string, () => Promise<any>]}} */
const PARTS = {
  notes: ["Notes", async () => notes],
  note: ["Note", () => import("./note.js")],
  queue: ["Queue", () => import("./queue.js")],
  column: ["Column", () => import("./column.js")],
  agree: ["Agree", () => import("./agree.js")],
  teach: ["Teach", () => import("./teach.js")],
  quality: ["Quality", () => import("./quality.js")],
  look: ["Vocabulary", () => import("./look.js")],
};
const OF_REVIEWERS = ["queue", "agree", "teach", "quality"];
const FIT = ["note", "queue"];  // the screen, and do not scroll
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const keys = /** @type {HTMLInputElement} */ (document.getElementById("keys"));
/** The module that is shown; null while it is opened. @type {any} */
let module = null;
let part = "";
let shown = 0;
let shownFor = "";  // the name of the person

/** What the service is, and what this person may do there. */
async function ask() {
  const [kb, access] = await Promise.all(["kb", "access"].map(get));
  const reads = access.role !== "reader";
  for (const name of OF_REVIEWERS) {
    /** @type {HTMLElement} */ (document.querySelector(`nav a[href="#${name}"]`)).hidden = !reads;
  }
  if (access.reviewer) nameField().value = access.reviewer;
  nameField().readOnly = Boolean(access.reviewer);
  const why = !kb.reviews ? "The service was started without reviews: nothing is kept."
    : reads ? "" : "Your token is for linking and search only: ask who runs the service for another one.";
  return { ...kb, reviews: !why, why, manages: access.role === "admin" };
}

/** A part of an address; one that is damaged is empty. @param {string} text */
function decode(text) {
  try { return decodeURIComponent(text); } catch { return ""; }
}

async function show() {
  const own = shown += 1;
  const [wanted, ...rest] = location.hash.slice(1).split("/");
  const [first = "", second = ""] = rest.map(decode);
  module?.leave?.();
  module = null;
  part = wanted in PARTS ? wanted : "notes";
  const [title, load] = PARTS[part];
  const tab = part === "note" ? "notes" : part;
  for (const anchor of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("nav a"))) {
    if (anchor.hash === `#${tab}`) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  document.title = `${title} – concept linking`;
  const asked = attempt("Reading …", ask);
  if (part === "notes") notes.render(main, asked);  // can be used before the answer
  const [info, opened] = await Promise.all([asked, attempt("", load)]);
  if (!info || !opened || own !== shown) return;
  shownFor = reviewer();
  document.body.classList.toggle("fits", FIT.includes(part));
  if (part !== "notes") await opened.render(main, info, first, second ? Number(second) : null);
  if (own !== shown) { opened.leave?.(); return; }
  module = opened;
  Object.assign(document.body.dataset, { part, reviewer: shownFor });
  for (const [, other] of Object.values(PARTS)) other().catch(() => {});  // the others are there when they are wanted
}

document.addEventListener("keydown", (event) => {
  if (!keys.checked || event.ctrlKey || event.metaKey || event.altKey) return;
  const target = /** @type {Element} */ (event.target);
  if (target.closest?.("textarea, select, input:not([type=checkbox])")) return;
  const bench = module?.bench?.();
  if (!bench) return;
  const inList = Boolean(target.closest(".keys"));
  const onButton = Boolean(target.closest("button, a, input, summary"));
  if (!module.press(event, bench, { inList, onButton })) return;
  event.preventDefault();
  if (document.activeElement === document.body) module.focus();
});

// "nora" is the Nora who has decided before.
async function settleName() {
  const field = nameField();
  field.value = field.value.trim();
  try {
    const { reviewers } = await get("reviews/documents");
    fill(/** @type {Element} */ (document.getElementById("names-known")), ...reviewers.map((/** @type {string} */ one) => make("option", { value: one })));
    const known = reviewers.find((/** @type {string} */ one) => one.toLowerCase() === field.value.toLowerCase());
    if (known) field.value = known;
  } catch { /* without reviews there are no names */ }
  localStorage.setItem("reviewer", field.value);
  if (shownFor !== reviewer() && ["note", "notes", "queue"].includes(part)) await show();
}

nameField().value = localStorage.getItem("reviewer") ?? "";
nameField().addEventListener("change", settleName);
keys.checked = localStorage.getItem("keys") !== "off";
keys.addEventListener("change", () => localStorage.setItem("keys", keys.checked ? "on" : "off"));
addEventListener("hashchange", async () => { say(""); await show(); main.focus({ preventScroll: true }); scrollTo(0, 0); });
show();
import("./session.js").then((session) => session.start(reviewer));  // what was not saved before a reload
