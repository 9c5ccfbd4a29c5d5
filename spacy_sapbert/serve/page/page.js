// The parts of the page, chosen by the address after "#".

import * as agree from "./agree.js";
import { attempt, get, nameField, reviewer } from "./api.js";
import * as column from "./column.js";
import { fill, make, say } from "./dom.js";
import * as look from "./look.js";
import * as note from "./note.js";
import * as notes from "./notes.js";
import * as quality from "./quality.js";
import * as queue from "./queue.js";
import * as session from "./session.js";
import * as teach from "./teach.js";

const PARTS = { notes: "Notes", queue: "Queue", column: "Column", agree: "Agree", teach: "Teach", quality: "Quality", look: "Vocabulary" };
const OF_REVIEWERS = ["queue", "agree", "teach", "quality"];
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const keys = /** @type {HTMLInputElement} */ (document.getElementById("keys"));
let part = "";
let shown = 0;
let shownFor = "";  // the name of the person

/** What the service is, and what this person may do there. */
async function ask() {
  const [kb, access] = await Promise.all(["/kb", "/access"].map(get));
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
  note.leave();
  queue.leave();
  part = wanted === "note" || wanted in PARTS ? wanted : "notes";
  const tab = part === "note" ? "notes" : part;
  for (const anchor of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("nav a"))) {
    if (anchor.hash === `#${tab}`) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  document.title = `${PARTS[/** @type {keyof typeof PARTS} */ (tab)]} – concept linking`;
  const asked = attempt("Reading …", ask);
  if (part === "notes") notes.render(main, asked);  // can be used before the answer
  const info = await asked;
  if (!info || own !== shown) return;
  shownFor = reviewer();
  document.body.classList.toggle("fits", part === "note" || part === "queue");
  if (part === "note") await note.render(main, info, first, second ? Number(second) : null);
  else if (part === "queue") await queue.render(main, info);
  else if (part === "column") column.render(main, info);
  else if (part === "agree") await agree.render(main, info);
  else if (part === "teach") await teach.render(main, info);
  else if (part === "quality") await quality.render(main, info);
  else if (part === "look") await look.render(main, info, first);
  if (own === shown) Object.assign(document.body.dataset, { part, reviewer: shownFor });
}

document.addEventListener("keydown", (event) => {
  if (!keys.checked || event.ctrlKey || event.metaKey || event.altKey) return;
  const target = /** @type {Element} */ (event.target);
  if (target.closest?.("textarea, select, input:not([type=checkbox])")) return;
  if (part === "note") note.onkey(event);
  else if (part === "queue") queue.onkey(event);
});

// "nora" is the Nora who has decided before.
async function settleName() {
  const field = nameField();
  field.value = field.value.trim();
  try {
    const found = await get("/reviews/documents");
    const { reviewers } = found;
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
session.start(reviewer);
show();
