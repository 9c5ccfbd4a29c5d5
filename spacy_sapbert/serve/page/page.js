// The parts of the page, chosen by the address after "#".

import { attempt, get, nameField, reviewer } from "./api.js";
import { offerCodes } from "./codes.js";
import { fill, later, make, say } from "./dom.js";
import { COMMANDS } from "./keys.js";
import * as notes from "./notes.js";

/** Title and module of each part; only that of the notes is needed at first. @type {{[part: string]: [string, () => Promise<any>]}} */
const PARTS = {
  notes: ["Notes", async () => notes],
  note: ["Note", () => import("./note.js")],
  queue: ["Queue", () => import("./queue.js")],
  column: ["Column", () => import("./column.js")],
  agree: ["Agree", () => import("./agree.js")],
  teach: ["Teach", () => import("./teach.js")],
  look: ["Vocabulary", () => import("./look.js")],
};
const FIT = ["note", "queue", "column", "agree"];  // the screen, and do not scroll
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const keys = /** @type {HTMLInputElement} */ (document.getElementById("keys"));
/** Where keys act; null while a part is opened, or if it has no keys. @type {any} */
let place = null;
let part = "";
let shown = 0;
let opening = false;  // a part, whose keys do nothing yet
let shownFor = "";  // the name of the person

/** What the service is, and what this person may do there. */
async function ask() {
  const [kb, access] = await Promise.all(["kb", "access"].map(get));
  const manages = access.role === "admin";
  offerCodes(kb);
  const reads = access.role !== "reader";
  hide("queue", !reads);
  hide("teach", !manages);
  if (access.reviewer) nameField().value = access.reviewer;
  nameField().readOnly = Boolean(access.reviewer);
  if (reads && kb.reviews) showAgree();
  const why = !kb.reviews ? "The service was started without reviews: nothing is kept."
    : reads ? "" : "Your token is for linking and search only: ask who runs the service for another one.";
  return { ...kb, reviews: !why, why, manages };
}

/** Shows Agree from a second person on; nothing waits for it. */
async function showAgree() {
  try {
    const names = await get("reviews/reviewers");
    hide("agree", new Set([...names, reviewer()].filter(Boolean)).size < 2);
  } catch { /* it stays as it is */ }
}

/** Hides a part in the head, or shows it. @param {string} name @param {boolean} hidden */
function hide(name, hidden) {
  /** @type {HTMLElement} */ (document.querySelector(`nav a[href="#${name}"]`)).hidden = hidden;
}

/** A part of an address; one that is damaged is empty. */
function decode(text) {
  try { return decodeURIComponent(text); } catch { return ""; }
}

async function show() {
  const own = shown += 1;
  const [wanted, ...rest] = location.hash.slice(1).split("/");
  const [first = "", second = ""] = rest.map(decode);
  place?.leave?.();
  place = null;
  opening = true;
  part = wanted in PARTS ? wanted : "notes";
  const [title, load] = PARTS[part];
  document.querySelector("nav a[aria-current]")?.removeAttribute("aria-current");
  document.querySelector(`nav a[href="#${part === "note" ? "notes" : part}"]`)?.setAttribute("aria-current", "page");
  document.title = `${title} – concept linking`;
  const asked = attempt("Reading …", ask);
  if (part === "notes") notes.render(main, asked);  // can be used before the answer
  const [info, opened] = await Promise.all([asked, attempt("", load)]);
  if (own !== shown) return;
  if (!info || !opened) { opening = false; return; }
  shownFor = reviewer();
  document.body.classList.toggle("fits", FIT.includes(part));
  const found = part === "notes" ? null : await opened.render(main, info, first, second ? Number(second) : null);
  if (own !== shown) { found?.leave?.(); return; }
  place = found;
  opening = false;
  Object.assign(document.body.dataset, { part, reviewer: shownFor });
  for (const [, other] of Object.values(PARTS)) other().catch(() => {});  // the others are there when they are wanted
}

document.addEventListener("keydown", (event) => {
  if (!keys.checked || event.ctrlKey || event.metaKey || event.altKey) return;
  const target = /** @type {Element} */ (event.target);
  if (target.closest?.("textarea, select, input:not([type=checkbox])")) return;
  if (!place) {
    if (opening && COMMANDS.some((one) => event.key.length === 1 && one.keys.includes(event.key))) say("This key did nothing: the page is still read.");
    return;
  }
  const inList = Boolean(target.closest(".keys"));
  const onButton = Boolean(target.closest("button, a, input, summary"));
  if (!place.press(event, { inList, onButton })) return;
  event.preventDefault();
  if (document.activeElement === document.body || document.activeElement === main) place?.focus();
});

// "nora" is the Nora who has decided before.
async function settleName() {
  const field = nameField();
  field.value = field.value.trim();
  try {
    const names = await get("reviews/reviewers");
    fill(/** @type {Element} */ (document.getElementById("names-known")), ...names.map((one) => make("option", { value: one })));
    const known = names.find((one) => one.toLowerCase() === field.value.toLowerCase());
    if (known) field.value = known;
  } catch { /* without reviews there are no names */ }
  localStorage.setItem("reviewer", field.value);
  if (shownFor !== reviewer() && ["note", "notes", "queue", "column"].includes(part)) await show();
}

nameField().value = localStorage.getItem("reviewer") ?? "";
nameField().addEventListener("change", settleName);
keys.checked = localStorage.getItem("keys") !== "off";
keys.addEventListener("change", () => localStorage.setItem("keys", keys.checked ? "on" : "off"));
addEventListener("hashchange", async () => {
  say("");
  await show();
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
  if (later.text) say(later.text);
  later.text = "";
});
show();
import("./session.js");  // what was not saved before a reload is sent
