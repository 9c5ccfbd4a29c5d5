// Link: a note, its marked mentions, their candidates, and what a person chooses.

import { attempt, get, post, randomKey, reviewer } from "/page/api.js";
import { describeReasons, showConcept } from "/page/concept.js";
import { dropZone, fill, make, say, score } from "/page/dom.js";

const NIL = "NIL";
const GROUPS = new Map();  // semantic type → class of its colour
const state = {
  name: "note", text: "", entities: [], kb: "", document: null,
  current: -1, chosen: [], undo: [],
};
let view = null;

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
  const file = make("input", { type: "file", accept: ".txt,text/plain", id: "file" });
  const take = async (one) => { state.name = one.name; text.value = await one.text(); };
  file.addEventListener("change", () => file.files.length && take(file.files[0]));
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
      make("label", { for: "file" }, "or a text file"), file),
    make("p", { class: "dim" },
      "Keys: ", ...["n", "p"].flatMap((key) => [make("kbd", {}, key), " "]),
      "next and previous mention, ", make("kbd", {}, "Enter"), " accept the first, ",
      make("kbd", {}, "1"), "–", make("kbd", {}, "9"), " choose, ",
      make("kbd", {}, "0"), " no concept, ", make("kbd", {}, "/"), " search, ",
      make("kbd", {}, "u"), " undo."),
    make("div", { class: "two" }, view.shown, view.panel));
  draw();
}

async function linkText(text) {
  const answer = await attempt("Linking …", () => post("/link", { texts: [text] }));
  if (!answer) return;
  const [found] = answer.documents;
  if (found.error) return say(found.error.message, true);
  Object.assign(state, {
    text, entities: found.entities, kb: answer.kb, document: null, undo: [],
    current: found.entities.length ? 0 : -1, chosen: found.entities.map(() => null),
  });
  say(`${found.entities.length} mentions.`);
  draw();
  view.shown.querySelector("button")?.focus();
}

// A mention that was not found: the text that is selected in the note.
async function mark(area) {
  if (area.value !== state.text) return say("Link the note first.", true);
  const count = (end) => [...area.value.slice(0, end)].length;
  const [start, end] = [count(area.selectionStart), count(area.selectionEnd)];
  if (start === end) return say("Select a part of the note first.", true);
  const overlaps = (one) => one.start < end && start < one.end;
  if (state.entities.some(overlaps)) return say("It overlaps another mention.", true);
  const text = [...area.value].slice(start, end).join("");
  const answer = await attempt("Linking …", () => post("/mentions", { mentions: [text] }));
  if (!answer) return;
  const [found] = answer.mentions;
  let place = state.entities.findIndex((one) => one.start > start);
  if (place < 0) place = state.entities.length;
  state.entities.splice(place, 0, { ...found, start, end, text, label: "" });
  state.chosen.splice(place, 0, null);
  state.undo = [];
  say("Marked. Choose its concept.");
  select(place, true);
}

// Offsets of the service count characters, those of a string half surrogate pairs.
function draw() {
  const characters = [...state.text];
  const parts = [];
  let place = 0;
  state.entities.forEach((entity, number) => {
    parts.push(characters.slice(place, entity.start).join(""));
    place = entity.end;
    parts.push(drawEntity(entity, number, characters));
  });
  parts.push(characters.slice(place).join(""));
  fill(view.shown, ...parts);
  view.shown.hidden = !state.text;
  drawPanel();
}

function drawEntity(entity, number, characters) {
  const chosen = state.chosen[number];
  const cui = chosen ?? entity.cui;
  const candidate = entity.candidates.find((one) => one.cui === cui);
  const name = cui === null || cui === NIL ? NIL : candidate?.name ?? cui;
  return make("button", {
    type: "button",
    class: `${cui === null || cui === NIL ? "nil" : groupOf(entity)}${chosen === null ? "" : " decided"}`,
    "aria-pressed": String(number === state.current),
    "data-number": number,
    onclick: () => select(number),
  }, characters.slice(entity.start, entity.end).join(""), make("small", {}, name));
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
  const chosen = state.chosen[state.current];
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

// A decision is shown when the service has written it.
async function choose(cui) {
  const number = state.current;
  if (number < 0) return;
  const before = state.chosen[number];
  if (!(await write(number, cui))) return;
  state.undo.push([number, before]);
  state.chosen[number] = cui;
  const following = state.chosen.findIndex((one, place) => place > number && one === null);
  select(following < 0 ? number : following, true);
}

async function undo() {
  const last = state.undo.at(-1);
  if (!last) return say("Nothing to undo.");
  if (!(await write(last[0], last[1]))) return;
  state.undo.pop();
  state.chosen[last[0]] = last[1];
  select(last[0], true);
}

async function write(number, chosen) {
  if (!view.reviews) {
    say("Not kept: start the service with --reviews to keep decisions.");
    return true;
  }
  if (!reviewer()) {
    say("Write your name above first.", true);
    document.getElementById("reviewer").focus();
    return null;
  }
  const entity = state.entities[number];
  return attempt("Writing …", async () => {
    if (!state.document) {
      const body = { name: state.name, text: state.text };
      state.document = (await post("/reviews/documents", body)).document;
    }
    await post("/reviews/decisions", {
      key: randomKey(), reviewer: reviewer(), document: state.document,
      start: entity.start, end: entity.end, label: entity.label, chosen, kb: state.kb,
      shown: entity.candidates.map(({ cui, score: value }) => ({ cui, score: value })),
    });
    say("Written.");
  });
}

export function onkey(event) {
  const entity = state.entities[state.current];
  if (!entity) return;
  const onButton = event.target.closest?.("button, a, input, textarea, select, summary");
  const inText = event.target.closest?.(".text");
  if (event.key === "n") select(state.current + 1, true);
  else if (event.key === "p") select(state.current - 1, true);
  else if (event.key === "u") undo();
  else if (event.key === "0") choose(NIL);
  else if (event.key === "/") document.getElementById("search").focus();
  else if (/^[1-9]$/.test(event.key) && entity.candidates[event.key - 1]) {
    choose(entity.candidates[event.key - 1].cui);
  } else if (event.key === "Enter" && entity.candidates.length && (inText || !onButton)) {
    choose(entity.candidates[0].cui);
  } else return;
  event.preventDefault();
}
