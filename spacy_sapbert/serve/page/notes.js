// Notes: a new one, files of them, and the list with what is open.

import { attempt, get, post, remove, reviewer } from "./api.js";
import { countOf, dropZone, fill, growingTable, localTime, make, say, select, sureButton, withLineFeeds } from "./dom.js";

const EXAMPLE = "78-year-old woman with atrial fibrillation and high cholesterol. Her mother had a heart attack. "
  + "She takes Lipitor and aspirin. Today fever and shortness of breath.";
const DRAFT = "draft";
/** The text of the last file: a text area has other line ends. @type {{name: string, text: string}|null} */
let file = null;
let filter = { words: "", which: "all" };

/** @param {string} text that is not linked yet; it outlives a reload */
const keepDraft = (text) => sessionStorage.setItem(DRAFT, text);

/** @param {HTMLElement} main @param {Promise<any>} asked what the service is */
export async function render(main, asked) {
  const text = make("textarea", { id: "note", dir: "auto", spellcheck: "false", rows: 5 });
  text.value = sessionStorage.getItem(DRAFT) ?? "";
  text.addEventListener("input", () => keepDraft(text.value));
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
    const data = new Uint8Array(await first.arrayBuffer());
    file = { name: first.name, text: decodeText(data) };
    name.value = file.name;
    text.value = withLineFeeds(file.text);
    keepDraft(text.value);
  };
  chooser.addEventListener("change", async () => {
    if (chooser.files.length) await take([...chooser.files]);
    chooser.value = "";  // the same files can be taken again
  });
  const run = async () => {
    if (!text.value.trim()) { say("Paste a note first, or open the example."); text.focus(); return; }
    // Offsets are those of the file, whose line ends a text area changes.
    const same = file && withLineFeeds(file.text) === text.value ? file : null;
    const given = { name: name.value.trim() || same?.name || `Note ${localTime(new Date().toISOString())}`,
      text: same?.text ?? text.value };
    let address = "#note";
    if ((await asked)?.reviews) {
      const kept = await attempt("Saving …", () => post("reviews/documents", given));
      if (!kept) return;
      address = `#note/${kept.document}`;
    } else if (!(await (await import("./note.js")).openText(given.name, given.text))) return;
    keepDraft("");
    location.hash = address;
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
        make("button", { id: "example", onclick: () => { text.value = EXAMPLE; run(); } }, "Try an example")),
      about),
    list);
  const info = await asked;
  if (!info || !list.isConnected) return;
  fill(about, info.reviews ? "Files: texts, or notes with their links as JSONL, PubTator, brat, BioC, CSV. Ctrl+Enter links."
    : info.why);
  if (info.reviews) await drawList(list, info);
}

/** The text of a file: UTF-8, UTF-16 with its mark, else that of Windows. @param {Uint8Array} data */
function decodeText(data) {
  const wide = data[0] === 0xff && data[1] === 0xfe ? "utf-16le" : data[0] === 0xfe && data[1] === 0xff ? "utf-16be" : "";
  try { return new TextDecoder(wide || "utf-8", { fatal: true }).decode(data); } catch {
    return new TextDecoder("windows-1252").decode(data);
  }
}

/** @param {File} one */
async function encode(one) {
  const bytes = new Uint8Array(await one.arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytes.length; at += 32_768) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 32_768));
  }
  return { name: one.webkitRelativePath || one.name, content: btoa(binary) };
}

/** @param {File[]} files @param {any} info @param {HTMLElement} list */
async function importFiles(files, info, list) {
  const found = await attempt("Reading …", async () =>
    post("reviews/import", { files: await Promise.all(files.map(encode)) }));
  if (!found) return;
  const parts = [`${countOf(found.read, "note")} read`, found.mentions && `${countOf(found.mentions, "link")} to check`,
    found.equal_texts && countOf(found.equal_texts, "equal text"), found.skipped && `${found.skipped} known already`,
    found.unknown_ids && `${countOf(found.unknown_ids, "id")} unknown here`];
  await drawList(list, info);
  say(`${parts.filter(Boolean).join(", ")}.`);
}

/** Links the notes that are not linked yet, some at a time. @param {() => void} [onstep] */
export async function prepare(onstep = () => {}) {
  for (;;) {
    const answer = await attempt("", () => post("reviews/prepare", {}));
    if (!answer?.left) return;
    say(`Linking: ${countOf(answer.left, "note")} left …`);
    onstep();
  }
}

/** @param {HTMLElement} list @param {any} info */
async function drawList(list, info) {
  const path = `reviews/documents?reviewer=${encodeURIComponent(reviewer())}`;
  const read = () => attempt("", () => get(path));
  const found = await read();
  if (!found) return;
  if (!found.documents.length) { fill(list); return; }
  const words = make("input", { id: "filter", type: "search", autocomplete: "off", value: filter.words });
  const count = make("span", { class: "dim", role: "status" });
  const isDone = (/** @type {any} */ one) => one.done.includes(reviewer());
  const chosen = () => found.documents.filter((/** @type {any} */ one) =>
    one.name.toLowerCase().includes(filter.words.trim().toLowerCase())
    && (filter.which === "all" || isDone(one) === (filter.which === "done")));
  const table = growingTable(["Note", "Decided", "State", "For", "Since", ""], (one) => [
    make("a", { href: `#note/${one.id}`, dir: "auto" }, one.name),
    one.mentions === null ? make("span", { class: "dim" }, "not linked yet") : make("span", {},
      make("progress", { max: one.mentions || 1, value: Math.min(one.decisions, one.mentions), "aria-label": "Decided" }),
      ` ${one.decisions} of ${Math.max(one.mentions, one.decisions)}`),
    isDone(one) ? "done ✓" : "open",
    one.assigned.join(", ") || "all",
    make("span", { class: "dim" }, localTime(one.time)),
    info.manages && sureButton("Delete", "Really delete?", async () => {
      if (!(await attempt("Deleting …", () => remove(`reviews/documents/${one.id}`)))) return;
      found.documents = found.documents.filter((/** @type {any} */ other) => other !== one);
      draw();
      say("Deleted for good.");
    })], "Notes", { class: "notes" });
  const draw = () => {
    table.draw(chosen());
    fill(count, `${found.documents.filter(isDone).length} of ${countOf(found.documents.length, "note")} done`);
  };
  words.addEventListener("input", () => { filter = { ...filter, words: words.value }; draw(); });
  const names = make("input", { id: "people", maxlength: 400, autocomplete: "off", placeholder: "names, with commas", list: "names-known" });
  const assign = async () => {
    const reviewers = names.value.split(",").map((/** @type {string} */ one) => one.trim()).filter(Boolean);
    const documents = chosen();
    const done = await attempt("Saving …", () => Promise.all(documents.map((/** @type {any} */ one) =>
      post(`reviews/documents/${one.id}/assigned`, { reviewers }))));
    if (!done) return;
    await drawList(list, info);
    say(`${countOf(documents.length, "note")}: for ${reviewers.join(", ") || "all"}.`);
  };
  fill(list, make("h2", {}, "Notes"),
    make("div", { class: "row" }, make("label", { for: "filter" }, "Search"), words,
      ...select("which", "Show", ["all", "open", "done"].map((one) => [one, one]), filter.which,
        (which) => { filter = { ...filter, which }; draw(); }), count),
    info.manages && make("details", {}, make("summary", {}, "Assign these notes"),
      make("div", { class: "row" }, make("label", { for: "people" }, "For"), names,
        make("button", { type: "button", id: "assign", onclick: assign }, "Assign the notes of this list"))),
    table.element);
  draw();
  if (found.documents.some((/** @type {any} */ one) => one.mentions === null)) {
    await prepare();
    const again = await read();
    if (!again || !list.isConnected) return;
    found.documents = again.documents;
    draw();
  }
}
