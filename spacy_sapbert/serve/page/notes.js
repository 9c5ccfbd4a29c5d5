// Notes: a new one, files of them, and the list with what is open.

import { attempt, get, post, remove, reviewer } from "./api.js";
import { countOf, dropZone, fill, growingList, localTime, make, say, sureButton } from "./dom.js";
import { openText } from "./note.js";
import { withLineFeeds } from "./text.js";

const EXAMPLE = "78-year-old woman with atrial fibrillation and high cholesterol. Her mother had a heart attack. "
  + "She takes Lipitor and aspirin. Today fever and shortness of breath.";
/** The text of the last file: a text area has other line ends. @type {{name: string, text: string}|null} */
let file = null;
let draft = "";

/** @param {HTMLElement} main @param {Promise<any>} asked what the service is */
export async function render(main, asked) {
  const text = make("textarea", { id: "note", dir: "auto", spellcheck: "false", rows: 5 });
  text.value = draft;
  text.addEventListener("input", () => { draft = text.value; });
  const name = make("input", { id: "name", maxlength: 200, autocomplete: "off", placeholder: "today’s date" });
  const chooser = make("input", { type: "file", id: "file", multiple: true, hidden: true });
  const list = make("div", { id: "list" });
  const about = make("p", { class: "dim" });
  const take = async (/** @type {File[]} */ files) => {
    const [first] = files;
    const info = await asked;
    if (info?.reviews && !(files.length === 1 && /\.txt$/i.test(first.name) && first.size < 20_000)) {
      await importFiles(files, info, list);
      return;
    }
    const content = new TextDecoder("utf-8", { fatal: true });
    const data = await first.arrayBuffer();
    try { file = { name: first.name, text: content.decode(data) }; } catch {
      file = { name: first.name, text: new TextDecoder("windows-1252").decode(data) };
    }
    name.value = file.name;
    text.value = draft = withLineFeeds(file.text);
  };
  chooser.addEventListener("change", () => chooser.files.length && take([...chooser.files]));
  const run = async () => {
    if (!text.value.trim()) { say("Paste a note first, or open the example."); text.focus(); return; }
    // Offsets are those of the file, whose line ends a text area changes.
    const same = file && withLineFeeds(file.text) === text.value ? file : null;
    const given = { name: name.value.trim() || same?.name || `Note ${localTime(new Date().toISOString())}`,
      text: same?.text ?? text.value };
    if (!(await asked)?.reviews) {
      if (await openText(given.name, given.text)) { draft = ""; location.hash = "#note"; }
      return;
    }
    const kept = await attempt("Saving …", () => post("/reviews/documents", given));
    if (kept) { draft = ""; location.hash = `#note/${kept.document}`; }
  };
  text.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
  });
  fill(main,
    make("section", { class: "intro" },
      make("h2", {}, "Find the concepts of a note"),
      make("p", {}, "Paste a note, or drop files with notes. Its medical terms are marked, and each gets a concept of the vocabulary. "
        + "Go through them with Enter, and correct what is wrong: the vocabulary can learn from it."),
      dropZone(make("div", {}, make("label", { for: "note" }, "Text of the note"), text), take),
      make("div", { class: "row" },
        make("button", { class: "main", id: "run", onclick: run }, "Link"),
        make("label", { for: "name" }, "Name"), name,
        make("button", { id: "files", onclick: () => chooser.click() }, "Open files …"), chooser,
        make("button", { id: "example", onclick: () => { text.value = draft = EXAMPLE; run(); } }, "Try an example")),
      about),
    list);
  const info = await asked;
  if (!info || !list.isConnected) return;
  fill(about, info.reviews ? "Files: texts, or notes with their links as JSONL, PubTator, brat, BioC, CSV. Ctrl+Enter links."
    : info.why);
  if (info.reviews) await drawList(list, info);
}

/** @param {File} one */
async function encode(one) {
  const bytes = new Uint8Array(await one.arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytes.length; at += 32_768) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 32_768));
  }
  return { name: one.name, content: btoa(binary) };
}

/** @param {File[]} files @param {any} info @param {HTMLElement} list */
async function importFiles(files, info, list) {
  const body = { files: await Promise.all(files.map(encode)) };
  const found = await attempt("Reading …", () => post("/reviews/import", body));
  if (!found) return;
  say(`${countOf(found.documents.length, "note")} read${found.mentions ? `, with ${countOf(found.mentions, "link")} to check` : ""}.`);
  await drawList(list, info);
}

/** Links the notes that are not linked yet, some at a time. @param {() => void} [onstep] */
export async function prepare(onstep = () => {}) {
  for (;;) {
    const answer = await attempt("", () => post("/reviews/prepare", {}));
    if (!answer?.left) return;
    say(`Linking: ${countOf(answer.left, "note")} left …`);
    onstep();
  }
}

/** @param {HTMLElement} list @param {any} info */
async function drawList(list, info) {
  const path = `/reviews/documents?reviewer=${encodeURIComponent(reviewer())}`;
  const read = () => attempt("", () => get(path));
  const found = await read();
  if (!found) return;
  if (!found.documents.length) { fill(list); return; }
  const filter = make("input", { id: "filter", type: "search", autocomplete: "off" });
  const which = make("select", { id: "which" },
    ...["all", "open", "done"].map((one) => make("option", { value: one }, one)));
  const rows = make("tbody");
  const count = make("span", { class: "dim", role: "status" });
  const isDone = (/** @type {any} */ one) => one.done.includes(reviewer());
  const shown = growingList(rows, (one) => make("tr", {},
    make("td", {}, make("a", { href: `#note/${one.id}`, dir: "auto" }, one.name)),
    make("td", {}, one.mentions === null ? make("span", { class: "dim" }, "not linked yet") : make("span", {},
      make("progress", { max: one.mentions || 1, value: Math.min(one.decisions, one.mentions), "aria-label": "Decided" }),
      ` ${one.decisions} of ${Math.max(one.mentions, one.decisions)}`)),
    make("td", {}, isDone(one) ? "done ✓" : "open"),
    make("td", { class: "dim" }, localTime(one.time)),
    make("td", {}, info.manages && sureButton("Delete", "Really delete?", async () => {
      if (!(await attempt("Deleting …", () => remove(`/reviews/documents/${one.id}`)))) return;
      found.documents = found.documents.filter((/** @type {any} */ other) => other !== one);
      say("Deleted for good.");
      draw();
    }))));
  const draw = () => {
    const words = filter.value.trim().toLowerCase();
    const chosen = found.documents.filter((/** @type {any} */ one) => one.name.toLowerCase().includes(words)
      && (which.value === "all" || isDone(one) === (which.value === "done")));
    shown.draw(chosen);
    const done = found.documents.filter(isDone).length;
    fill(count, `${done} of ${countOf(found.documents.length, "note")} done`);
  };
  filter.addEventListener("input", draw);
  which.addEventListener("change", draw);
  fill(list, make("h2", {}, "Notes"),
    make("div", { class: "row" }, make("label", { for: "filter" }, "Search"), filter,
      make("label", { for: "which" }, "Show"), which, count),
    make("div", { class: "scroll" }, make("table", { class: "notes" },
      make("thead", {}, make("tr", {}, ...["Note", "Decided", "State", "Since"].map((one) =>
        make("th", { scope: "col" }, one)), make("td"))), rows), shown.more));
  draw();
  if (found.documents.some((/** @type {any} */ one) => one.mentions === null)) {
    await prepare();
    const again = await read();
    if (!again || !rows.isConnected) return;
    found.documents = again.documents;
    draw();
  }
}
