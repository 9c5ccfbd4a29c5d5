// Agree: where reviewers differ, what they agree on, and files of the decisions.

import { attempt, get, hasName, randomKey, reviewer, send } from "./api.js";
import { download, fill, growingList, make, say, table } from "./dom.js";
import { dispatch } from "./session.js";
import { NIL, NO_MENTION } from "./state.js";

const AGREED = "agreed";  // in exports: what holds

/** @param {HTMLElement} main @param {any} info */
export async function render(main, info) {
  fill(main, make("h2", {}, "Agree"));
  if (info.why) { main.append(make("p", {}, info.why)); return; }
  const found = await attempt("Reading …", async () => {
    const [listed, agreement, differences] = await Promise.all(
      ["/reviews/documents", "/reviews/agreement", "/reviews/differences"].map(get));
    return { ...listed, ...agreement, differences };
  });
  if (!found) return;
  const people = found.reviewers;
  fill(main,
    make("h2", {}, "Where reviewers differ"),
    drawDifferences(found.differences, info),
    make("h2", {}, "Agreement"),
    found.pairs.length ? table(["Reviewers", "Mentions of both", "Agree", "Cohen’s kappa", "F1 with spans"],
      found.pairs.map((/** @type {any} */ one) => [one.reviewers.join(" and "), one.mentions, one.agree, one.kappa, one.f1]),
      "Agreement") : make("p", {}, people.length > 1 ? "No note has decisions of two reviewers yet."
      : "When two people decide on the same notes, you see here how far they agree."),
    make("h2", {}, "Download the decisions"),
    drawDownload(found, people));
}

/** @param {any} found @param {any} info */
function drawDifferences(found, info) {
  if (!found.places.length) return make("p", {}, "Nowhere.");
  const people = [...new Set(found.places.flatMap((/** @type {any} */ one) => Object.keys(one.choices)))].sort();
  const name = (/** @type {string|null} */ cui) => (cui === null || cui === NO_MENTION ? "not a mention"
    : cui === NIL ? "no concept" : found.names[cui] ?? cui);
  const left = make("p", { role: "status" });
  let open = found.open;
  const count = () => fill(left, `${open} of ${found.total} are not settled.`);
  const rows = make("tbody");
  const shown = growingList(rows, (one) => {
    const { place, choices } = one;
    const answers = [...new Set(Object.values(choices).map((each) => each ?? NO_MENTION))];
    const cell = make("td", { class: "choices" });
    const draw = () => fill(cell, ...answers.map((cui) => make("button", {
      type: "button", class: "chip", "aria-pressed": String(one.agreed === cui),
      onclick: () => {
        if (!hasName()) return;
        if (one.agreed === null) open -= 1;
        settle({ ...place, chosen: one.agreed }, /** @type {string} */ (cui), info.digest);
        one.agreed = cui;
        draw();
        count();
      },
    }, name(/** @type {string} */ (cui)))));
    draw();
    return make("tr", {},
      make("td", { dir: "auto" }, make("a", { href: `#note/${place.document}/${place.start}` }, place.name), ": ",
        place.before.slice(-40).replace(/\s+/g, " "), make("strong", {}, place.text), place.after.slice(0, 40).replace(/\s+/g, " ")),
      ...people.map((who) => make("td", {}, who in choices ? name(choices[who]) : "–")), cell);
  });
  count();
  shown.draw(found.places);
  const head = ["Where", ...people, "Agreed"];
  return make("div", {}, left,
    make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Differences" },
      make("table", {}, make("thead", {}, make("tr", {}, ...head.map((one) => make("th", { scope: "col" }, one)))),
        rows)), shown.more);
}

/** @param {any} place @param {string} chosen @param {string} kb */
function settle(place, chosen, kb) {
  dispatch({ type: "together", places: [place], chosen, reviewer: reviewer(), key: randomKey(), kb, candidates: [], settles: true });
}

/** @param {any} found @param {string[]} people */
function drawDownload(found, people) {
  const who = make("select", { id: "who" }, make("option", { value: AGREED }, "what is agreed"),
    make("option", { value: "" }, "all reviewers, one by one"),
    ...people.map((name) => make("option", { value: name }, name)));
  const kind = make("select", { id: "kind" },
    ...found.formats.map((/** @type {string} */ name) => make("option", { value: name }, name)));
  return make("div", { class: "row" },
    make("label", { for: "who" }, "Of"), who, make("label", { for: "kind" }, "as"), kind,
    make("button", { id: "export", onclick: () => save(kind.value, who.value) }, "Download"));
}

/** @param {string} format @param {string} who */
async function save(format, who) {
  const path = `/reviews/export?format=${format}${who ? `&reviewer=${encodeURIComponent(who)}` : ""}`;
  const found = await attempt("Writing …", async () => {
    const answer = await send(path);
    const name = answer.headers.get("content-disposition")?.match(/"(.+)"/)?.[1] ?? "reviews";
    return { data: await answer.blob(), name };
  });
  if (!found) return;
  download(found.data, found.name);
  say("Downloaded.");
}
