// Link: a note, its marked mentions, their candidates, and what a person chooses.

import { attempt, get, post, randomKey, reviewer } from "/page/api.js";
import { describeReasons, showConcept } from "/page/concept.js";
import { dropZone, fill, make, say, score } from "/page/dom.js";

const NIL = "NIL";
const GROUPS = new Map();  // semantic type → class of its colour
// The note on the page. Another note is another object, so that what was asked about one
// never lands in the other. Of an entity, `chosen` is what a person chose, null = nothing
// yet; `saved` is what of it is written, and `saving` how many decisions are not yet.
let state = newNote({});
let file = null;  // the text of the last file, and its name
let view = null;
let queue = Promise.resolve();  // decisions are written one after another
let waiting = 0;  // decisions that are not written yet
let asked = 0;  // notes to link: the last one is shown

function newNote(values) {
  return {
    name: "note", text: "", entities: [], kb: "", document: null, current: -1, undo: [],
    ...values,
  };
}

function newEntity(found) {
  return { ...found, chosen: null, saved: null, saving: 0 };
}

// The text as a text area has it.
function withLineFeeds(text) {
  return text.replace(/\r\n?/g, "\n");
}

export async function loadGroups() {
  for (const [type, key] of Object.entries(await get("/page-data/groups"))) {
    GROUPS.set(type, key);
  }
}

function groupOf(entity) {
  const types = entity.candidates[0]?.types ?? [];
  return types.map((type) => GROUPS.get(type)).find(Boolean) ?? "other";
}

export function render(main, reviews) {
  const text = make("textarea", { id: "note", dir: "auto", spellcheck: "false" });
  text.value = state.text;
  const chooser = make("input", { type: "file", accept: ".txt,text/plain", id: "file" });
  const take = async (one) => {
    file = { name: one.name, text: await one.text() };
    text.value = file.text;
  };
  chooser.addEventListener("change", () => chooser.files.length && take(chooser.files[0]));
  const run = () => linkText(text.value);
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
  });
  view = {
    reviews,
    shown: make("div", { class: "text", dir: "auto" }),
    panel: make("section", { class: "panel", "aria-label": "Candidates" }),
  };
  fill(main,
    make("h2", {}, "Link a note"),
    dropZone(make("div", {},
      make("label", { for: "note" }, "Text of the note"), text), take),
    make("div", { class: "row" },
      make("button", { class: "main", id: "run", onclick: run }, "Link"),
      make("button", { id: "mark", onclick: () => mark(text) }, "Mark the selected text"),
      make("label", { for: "file" }, "or a text file"), chooser),
    make("p", { class: "dim" },
      "Keys: ", ...["n", "p"].flatMap((key) => [make("kbd", {}, key), " "]),
      "next and previous mention, ", make("kbd", {}, "Enter"), " accept what is shown, ",
      make("kbd", {}, "1"), "–", make("kbd", {}, "9"), " choose, ",
      make("kbd", {}, "0"), " no concept, ", make("kbd", {}, "/"), " search, ",
      make("kbd", {}, "u"), " undo."),
    make("div", { class: "two" }, view.shown, view.panel));
  draw();
}

// Offsets are those of the file, whose line ends a text area changes.
async function linkText(shown) {
  const own = asked += 1;
  const same = [file, state].find((one) => one && withLineFeeds(one.text) === shown);
  const { name, text } = same ?? { name: "note", text: shown };
  const answer = await attempt("Linking …", () => post("/link", { texts: [text] }));
  if (!answer || own !== asked) return;
  const [found] = answer.documents;
  if (found.error) return say(found.error.message, true);
  state = newNote({
    name, text, kb: answer.kb, current: found.entities.length ? 0 : -1,
    entities: found.entities.map(newEntity),
  });
  say(`${found.entities.length} mentions.`);
  draw();
  view.shown.querySelector("button")?.focus();
}

// A mention that was not found: the text that is selected in the note.
async function mark(area) {
  const note = state;
  if (area.value !== withLineFeeds(note.text)) return say("Link the note first.", true);
  const characters = [...note.text];
  const count = (end) => findPlace(characters, [...area.value.slice(0, end)].length);
  let [start, end] = [count(area.selectionStart), count(area.selectionEnd)];
  while (start < end && !characters[start].trim()) start += 1;
  while (start < end && !characters[end - 1].trim()) end -= 1;
  if (start === end) return say("Select a part of the note first.", true);
  const overlaps = (one) => one.start < end && start < one.end;
  if (note.entities.some(overlaps)) return say("It overlaps another mention.", true);
  const text = characters.slice(start, end).join("");
  const answer = await attempt("Linking …", () => post("/mentions", { mentions: [text] }));
  if (!answer || state !== note) return;
  const [found] = answer.mentions;
  let place = note.entities.findIndex((one) => one.start > start);
  if (place < 0) place = note.entities.length;
  const entity = newEntity({ ...found, start, end, text, label: "" });
  note.entities.splice(place, 0, entity);
  note.undo.push({ entity, marked: true });
  say("Marked. Choose its concept, or undo.");
  select(place, true);
}

// Where a place of the text area is in the text, which may have \r\n for each \n.
function findPlace(characters, place) {
  let found = 0;
  for (; place > 0; place -= 1) {
    found += characters[found] === "\r" && characters[found + 1] === "\n" ? 2 : 1;
  }
  return found;
}

// Offsets of the service count characters, those of a string half surrogate pairs.
function draw() {
  const characters = [...state.text];
  const parts = [];
  let place = 0;
  state.entities.forEach((entity, number) => {
    parts.push(withLineFeeds(characters.slice(place, entity.start).join("")));
    place = entity.end;
    parts.push(drawEntity(entity, number, characters));
  });
  parts.push(withLineFeeds(characters.slice(place).join("")));
  fill(view.shown, ...parts);
  view.shown.hidden = !state.text;
  drawPanel();
}

function drawEntity(entity, number, characters) {
  const cui = entity.chosen ?? entity.cui;
  const candidate = entity.candidates.find((one) => one.cui === cui);
  const name = cui === null || cui === NIL ? NIL : candidate?.name ?? cui;
  return make("button", {
    type: "button",
    class: `${cui === null || cui === NIL ? "nil" : groupOf(entity)} ${decisionClass(entity)}`,
    "aria-pressed": String(number === state.current),
    "data-number": number,
    onclick: () => select(number),
  }, withLineFeeds(characters.slice(entity.start, entity.end).join("")),
  make("small", {}, name));
}

function decisionClass(entity) {
  if (entity.saving) return "saving";
  return entity.chosen === null ? "" : "decided";
}

// Shows that a decision was written, without moving the focus.
function drawWritten(note, entity) {
  const number = note.entities.indexOf(entity);
  const button = view.shown.querySelector(`[data-number="${number}"]`);
  if (note !== state || !button) return;
  button.classList.remove("saving", "decided");
  if (decisionClass(entity)) button.classList.add(decisionClass(entity));
}

function select(number, focus = false) {
  if (!state.entities.length) return;
  state.current = (number + state.entities.length) % state.entities.length;
  draw();
  const button = view.shown.querySelector(`[data-number="${state.current}"]`);
  if (focus) button.focus();
  button.scrollIntoView({ block: "nearest" });
}

function drawPanel() {
  const entity = state.entities[state.current];
  view.panel.hidden = !entity;
  if (!entity) return;
  const { chosen } = entity;
  const about = make("div", {});
  const choice = (one, key) => make("li", {},
    make("button", {
      type: "button", class: "choose", "data-cui": one.cui,
      "aria-pressed": String(chosen === one.cui), onclick: () => choose(one.cui),
    }, key ? make("kbd", {}, key) : "", ` ${one.name} `,
      make("span", { class: "dim" }, one.alias && one.alias !== one.name ? `“${one.alias}”` : "")),
    make("div", { class: "row dim" },
      score(one.score, "score"),
      one.probability === null || one.probability === undefined ? ""
        : make("span", {}, "probability ", score(one.probability, "probability")),
      one.types.join(", "),
      make("button", {
        type: "button", "aria-label": `More about ${one.name}`,
        onclick: () => showConcept(about, one.cui),
      }, one.cui)));
  const search = make("input", { id: "search", type: "search", maxlength: 200 });
  const results = make("ul", { class: "candidates" });
  const find = async () => {
    if (!search.value.trim()) return;
    const path = `/search?k=5&q=${encodeURIComponent(search.value.trim())}`;
    const found = await attempt("Searching …", () => get(path));
    if (!found) return;
    say(`${found.concepts.length} concepts.`);
    fill(results, ...found.concepts.map((one) => choice(one, "")));
  };
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") find();
    if (event.key === "Escape") select(state.current, true);
  });
  fill(view.panel,
    make("h2", { dir: "auto" }, entity.text),
    entity.note ? make("p", { class: "dim" }, entity.note) : null,
    make("ol", { class: "candidates" },
      ...entity.candidates.slice(0, 9).map((one, place) => choice(one, String(place + 1))),
      make("li", {}, make("button", {
        type: "button", class: "choose", "data-cui": NIL,
        "aria-pressed": String(chosen === NIL), onclick: () => choose(NIL),
      }, make("kbd", {}, "0"), " no concept (NIL)"))),
    make("div", { class: "row" },
      make("label", { for: "search" }, "Other concept"), search,
      make("button", { type: "button", onclick: find }, "Search"),
      make("button", { type: "button", onclick: () => explain(entity, about) }, "Why?"),
      make("button", { type: "button", onclick: undo }, "Undo")),
    results, about);
}

async function explain(entity, about) {
  const body = { mention: entity.text, label: entity.label || null };
  const found = await attempt("Explaining …", () => post("/explain", body));
  if (!found) return;
  say("");
  fill(about, make("h3", {}, "Why"), describeReasons(found));
}

// The mention is fixed here, before the service has answered; the next key is of the next
// mention.
function choose(cui) {
  const note = state;
  const entity = note.entities[note.current];
  if (!entity || !canWrite()) return;
  const entry = { entity, before: entity.chosen, reviewer: reviewer() };
  note.undo.push(entry);
  entity.chosen = cui;
  write(note, entity, cui, entry.reviewer, () => {
    note.undo = note.undo.filter((one) => one !== entry);
  });
  const following = note.entities.findIndex(
    (one, place) => place > note.current && one.chosen === null);
  select(following < 0 ? note.current : following, true);
}

// A withdrawal is written under the name that decided.
function undo() {
  const note = state;
  const last = note.undo.pop();
  if (!last) return say("Nothing to undo.");
  const { entity } = last;
  if (last.marked) {
    note.entities = note.entities.filter((one) => one !== entity);
    note.current = Math.min(note.current, note.entities.length - 1);
    say("Removed the mark.");
    return draw();
  }
  entity.chosen = last.before;
  write(note, entity, last.before, last.reviewer, () => note.undo.push(last));
  select(note.entities.indexOf(entity), true);
}

function canWrite() {
  if (!view.reviews || reviewer()) return true;
  say("Write your name above first.", true);
  document.getElementById("reviewer").focus();
  return false;
}

// Writes a decision after those before it; if it cannot be written, it is taken back.
function write(note, entity, chosen, name, takeBack) {
  if (!view.reviews) {
    say("Not kept: start the service with --reviews to keep decisions.");
    return;
  }
  entity.saving += 1;
  waiting += 1;
  say("Writing …");
  queue = queue.then(async () => {
    const written = await attempt("Writing …", () => send(note, entity, chosen, name));
    entity.saving -= 1;
    waiting -= 1;
    if (written) {
      entity.saved = chosen;
      if (!waiting) say("Written.");
      return drawWritten(note, entity);
    }
    takeBack();
    if (!entity.saving) entity.chosen = entity.saved;
    if (note === state) draw();
  });
}

async function send(note, entity, chosen, name) {
  if (!note.document) {
    const body = { name: note.name, text: note.text };
    note.document = (await post("/reviews/documents", body)).document;
  }
  await post("/reviews/decisions", {
    key: randomKey(), reviewer: name, document: note.document,
    start: entity.start, end: entity.end, label: entity.label, chosen, kb: note.kb,
    shown: entity.candidates.map(({ cui, score: value }) => ({ cui, score: value })),
  });
}

// The browser asks before it leaves with decisions that are not written.
addEventListener("beforeunload", (event) => { if (waiting) event.preventDefault(); });

export function onkey(event) {
  const entity = state.entities[state.current];
  if (!entity) return;
  const onButton = event.target.closest?.("button, a, input, textarea, select, summary");
  const inText = event.target.closest?.(".text");
  const candidate = /^[1-9]$/.test(event.key) ? entity.candidates[event.key - 1] : null;
  let act = null;
  if (event.key === "n") select(state.current + 1, true);
  else if (event.key === "p") select(state.current - 1, true);
  else if (event.key === "u") act = undo;
  else if (event.key === "0") act = () => choose(NIL);
  else if (event.key === "/") document.getElementById("search").focus();
  else if (candidate) act = () => choose(candidate.cui);
  else if (event.key === "Enter" && (inText || !onButton)) {
    act = () => choose(entity.chosen ?? entity.cui ?? NIL);  // what is shown
  } else return;
  event.preventDefault();
  if (act && !event.repeat) act();  // a key that is held decides once
}
