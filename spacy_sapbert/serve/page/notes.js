// Notes: a new one, files of them, the list with what is open, and files of the decisions.

import { attempt, get, post, remove, reviewer, saveFile } from "./api.js";
import { countOf, fileField, fill, growingTable, later, localTime, make, say, select, sureButton } from "./dom.js";

const EXAMPLE = "78-year-old woman with atrial fibrillation and high cholesterol. Her mother had a heart attack. "
  + "She takes Lipitor and aspirin. Today fever and shortness of breath.";
const AGREED = "agreed";  // in exports: what holds
const DRAFT = "draft";  // a text that is not linked yet outlives a reload
let filter = { words: "", which: "all", folder: "" };

/** The folder in the name of a note, "ward 1/note.txt"; "" = none. */
const folderOf = ({ name }) => name.slice(0, Math.max(0, name.lastIndexOf("/")));

export async function render(main, asked) {
  const text = make("textarea", { id: "note", dir: "auto", spellcheck: "false", rows: 5, value: sessionStorage.getItem(DRAFT) ?? "" });
  text.addEventListener("input", () => sessionStorage.setItem(DRAFT, text.value));
  const name = make("input", { id: "name", maxlength: 200, autocomplete: "off", placeholder: "today’s date" });
  const list = make("div", { id: "list" });
  const about = make("div", {});
  const run = async () => {
    if (!text.value.trim()) { say("Paste a note first, or open the example."); text.focus(); return; }
    const given = { name: name.value.trim() || `Note ${localTime(new Date().toISOString())}`, text: text.value };
    let address = "#note";
    if ((await asked)?.reviews) {
      const kept = await attempt("Saving …", () => post("reviews/documents", given));
      if (!kept) return;
      address = `#note/${kept.document}`;
    } else if (!(await (await import("./note.js")).openText(given.name, given.text))) return;
    sessionStorage.removeItem(DRAFT);
    location.hash = address;
  };
  fill(main,
    make("section", { class: "intro" },
      make("h2", {}, "Find the concepts of a note"),
      make("p", {}, "Paste a note, or open files of notes. Its medical terms are marked, and each gets a concept of the vocabulary. "
        + "Go through them with Enter, and correct what is wrong: the vocabulary can learn from it."),
      make("label", { for: "note" }, "Text of the note"), text,
      make("div", { class: "row" },
        make("button", { class: "main", id: "run", onclick: run }, "Link"),
        make("label", {}, "Name ", name),
        make("button", { id: "example", onclick: () => { text.value = EXAMPLE; run(); } }, "Try an example")),
      about),
    list);
  const info = await asked;
  if (!info || !list.isConnected) return;
  if (!info.reviews) { fill(about, make("p", { class: "dim" }, info.why)); return; }
  fill(about, make("div", { class: "row" },
    fileField("file", "Files", { multiple: true }, (files) => importFiles(files, info, list)),
    make("span", { class: "dim" }, "texts, or notes with their links: JSONL, PubTator, brat, BioC, CSV")));
  await drawList(list, info);
}

/** A file as the service takes it, in base64. */
async function encode(file) {
  const reader = new FileReader();
  const isRead = new Promise((done, fail) => { reader.onload = done; reader.onerror = () => fail(reader.error); });
  reader.readAsDataURL(file);
  await isRead;
  return { name: file.webkitRelativePath || file.name, content: String(reader.result).split(",")[1] };
}

async function importFiles(files, info, list) {
  const found = await attempt("Reading …", async () =>
    post("reviews/import", { files: await Promise.all(files.map(encode)) }));
  if (!found) return;
  const parts = [`${countOf(found.read, "note")} read`, found.mentions && `${countOf(found.mentions, "link")} to check`,
    found.equal_texts && countOf(found.equal_texts, "equal text"), found.skipped && `${found.skipped} known already`,
    found.unknown_ids && `${countOf(found.unknown_ids, "id")} unknown here`];
  const text = `${parts.filter(Boolean).join(", ")}.`;
  if (found.documents.length === 1) {
    later.text = text;
    location.hash = `#note/${found.documents[0]}`;
    return;
  }
  await drawList(list, info);
  say(text);
}

/** Links the notes that are not linked yet, some at a time. */
export async function prepare() {
  let doing = "";
  for (;;) {
    const answer = await attempt(doing, () => post("reviews/prepare", {}));
    if (!answer?.left) return;
    doing = `Linking: ${countOf(answer.left, "note")} left …`;
  }
}

async function drawList(list, info) {
  const read = () => attempt("", () => get(`reviews/documents?reviewer=${encodeURIComponent(reviewer())}`));
  const [found, people] = await Promise.all([read(), attempt("", () => get("reviews/reviewers"))]);
  let documents = found?.documents ?? [];
  if (!documents.length) { fill(list); return; }
  const words = make("input", { id: "filter", type: "search", autocomplete: "off", value: filter.words });
  const count = make("span", { class: "dim", role: "status" });
  const isDone = (one) => one.done.includes(reviewer());
  const folders = [...new Set(documents.map(folderOf))].filter(Boolean).sort();
  if (!folders.includes(filter.folder)) filter.folder = "";
  const chosen = () => documents.filter((one) => (!filter.folder || folderOf(one) === filter.folder) && one.name.toLowerCase().includes(filter.words.trim().toLowerCase())
    && (filter.which === "all" || (filter.which === "asked" ? one.questions > 0 : isDone(one) === (filter.which === "done"))));
  const table = growingTable(["Note", "Decided", "State", "Since", ""], "Notes", (one) => [
    make("a", { href: `#note/${one.id}`, dir: "auto" }, one.name),
    one.mentions === null ? make("span", { class: "dim" }, "not linked yet") : `${one.decisions} of ${Math.max(one.mentions, one.decisions)}`,
    `${isDone(one) ? "done ✓" : "open"}${one.questions ? `, ${countOf(one.questions, "question")}` : ""}`,
    make("span", { class: "dim" }, localTime(one.time)),
    info.manages && sureButton("Delete", `Delete “${one.name}” for good, and what was learned from it?`, async () => {
      const gone = await attempt("Deleting …", () => remove(`reviews/documents/${one.id}`));
      if (!gone) return;
      documents = documents.filter((other) => other !== one);
      draw();
      const learned = gone.versions ? ` ${countOf(gone.versions, "version")} that learned from it went too: teach again.` : "";
      say(`Deleted for good.${learned}`);
    })]);
  const draw = () => {
    table.draw(chosen());
    const shown = filter.folder ? chosen() : documents;
    fill(count, `${shown.filter(isDone).length} of ${countOf(shown.length, "note")} done`);
  };
  words.addEventListener("input", () => { filter = { ...filter, words: words.value }; draw(); });
  fill(list, make("h2", {}, "Notes"),
    make("div", { class: "row" }, make("label", {}, "Search ", words),
      select("which", "Show", ["all", "open", "done", "asked"].map((one) => [one, one]), filter.which,
        (which) => { filter = { ...filter, which }; draw(); }),
      folders.length > 0 && select("folder", "Folder", [["", "all"], ...folders.map((one) => [one, one])], filter.folder,
        (folder) => { filter = { ...filter, folder }; draw(); }), count),
    make("details", {}, make("summary", {}, "Download the decisions"), drawDownload(found.formats, people ?? [])),
    table.element);
  draw();
  if (documents.some((one) => one.mentions === null)) {
    await prepare();
    const again = await read();
    if (!again || !list.isConnected) return;
    ({ documents } = again);
    draw();
  }
}

function drawDownload(formats, people) {
  let [who, kind] = [AGREED, formats[0]];
  return make("div", { class: "row" },
    select("who", "Of", [[AGREED, "what is agreed"], ["", "all reviewers, one by one"], ...people.map((name) => [name, name])],
      who, (value) => { who = value; }),
    select("kind", "as", formats.map((name) => [name, name]), kind, (value) => { kind = value; }),
    make("button", { id: "export", onclick: async () => {
      await (await import("./session.js")).flush();  // what is on its way is in it
      const query = new URLSearchParams({ format: kind, ...(who && { reviewer: who }) });
      saveFile(`reviews/export?${query}`);
    } }, "Download"));
}
