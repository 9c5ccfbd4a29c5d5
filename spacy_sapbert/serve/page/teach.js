// Teach: versions of the knowledge base that have learned from the decisions.

import { attempt, get, post, remove } from "./api.js";
import { countOf, fill, localTime, make, pairs, say, sureButton, table } from "./dom.js";
import { placesOf } from "./places.js";

const WAIT = 1000;  // milliseconds between two questions

const share = (/** @type {number|null} */ value) => (value === null ? "–" : value.toFixed(3));

let manages = false;

/** @param {HTMLElement} main @param {any} info */
export async function render(main, info) {
  fill(main, make("h2", {}, "Teach the knowledge base"));
  if (info.why) { main.append(make("p", {}, info.why)); return; }
  ({ manages } = info);
  const force = make("input", { type: "checkbox", id: "force" });
  const report = make("div", {});
  main.append(
    make("p", {}, "A new version learns from all decisions that count now, always starting from the original knowledge base. ",
      "Mentions on which reviewers differ are left out until they are settled under ", make("a", { href: "#agree" }, "Agree"),
      ". All figures are by cross-validation: of notes that were not learned from."),
    manages ? make("div", { class: "row" },
      make("button", { class: "main", id: "teach", onclick: () => start(report, force.checked) }, "Teach"),
      force, make("label", { for: "force" }, "keep the version even if nothing gets better"))
      : make("p", {}, "An admin can make a version, and choose which one is used."),
    report);
  const found = await attempt("Reading …", () => get("reviews/teach"));
  if (found?.state === "running") watch(report);
  else if (found) draw(report, found);
}

/** @param {HTMLElement} report @param {boolean} force */
async function start(report, force) {
  if (await attempt("Teaching …", () => post("reviews/teach", { force }))) watch(report);
}

/** @param {HTMLElement} report */
async function watch(report) {
  const found = await attempt("", () => get("reviews/teach"));
  if (!found) return;
  if (found.state === "running") {
    say("Teaching …");
    setTimeout(() => watch(report), WAIT);
    return;
  }
  draw(report, found);
  if (found.error) say(found.error.message, true);
  else if (found.report) say(found.report.changed ? "Learned." : "Nothing gets better, so no version was made.");
}

/** @param {HTMLElement} report @param {any} found */
async function draw(report, found) {
  const newest = found.report ?? found.versions[0]?.report;
  const show = (/** @type {Map<string, string>} */ names) =>
    fill(report, drawVersions(report, found), ...(newest ? drawReport(newest, found.fewest, names) : []));
  show(new Map());
  const ids = [...new Set((newest?.lost ?? []).flatMap((/** @type {any} */ one) => [one.cui, one.now]))].filter(Boolean);
  if (!ids.length) return;
  const read = (/** @type {string} */ id) => get(`concepts/${encodeURIComponent(id)}?related=0`).catch(() => ({ name: id }));
  const names = await Promise.all(ids.map(async (id) => /** @type {[string, string]} */ ([id, (await read(id)).name])));
  if (report.isConnected) show(new Map(names));
}

/** @param {HTMLElement} report @param {any} found */
function drawVersions(report, found) {
  if (!found.versions.length) return null;
  const inUse = found.versions.find((/** @type {any} */ one) => one.used);
  const use = (/** @type {any} */ body, /** @type {string} */ text) => async () => {
    const answer = await attempt("Loading …", () => post("reviews/switch", body));
    if (!answer) return;
    draw(report, answer);
    say(text);
  };
  const rows = found.versions.map((/** @type {any} */ one, /** @type {number} */ place) => [
    `Version ${one.number}${one.older_base ? ", of an older vocabulary: teach again" : ""}`, localTime(one.time), one.mentions, share(one.before), share(one.after),
    one.used ? make("strong", {}, "in use") : !manages ? "" : make("button", {
      class: place ? "" : "main", id: place ? null : "use",
      onclick: use({ number: one.number }, "The service uses the taught knowledge base."),
    }, "Use"),
    !manages ? "" : sureButton("Delete", "Really delete?", async () => {
      const answer = await attempt("Deleting …", () => remove(`reviews/teach/${one.number}`));
      if (!answer) return;
      draw(report, answer);
      say(`Version ${one.number} is deleted.`);
    }),
  ]);
  const back = !inUse ? make("strong", {}, "in use") : !manages ? ""
    : make("button", { id: "back", onclick: use({ number: null }, "The service uses the original again.") }, "Back");
  rows.push(["Original", "", null, null, null, back, ""]);
  return make("div", {}, make("h3", {}, "Versions"),
    table(["Version", "Made", "Mentions", "Right before", "Right after", "Use", ""], rows, "Versions"));
}

/**
 * @param {any} one
 * @param {number} fewest mentions for an order
 * @param {Map<string, string>} names of ids
 */
function drawReport(one, fewest, names) {
  const missing = fewest - one.counts.mentions;
  const row = (/** @type {string} */ name, /** @type {any} */ shares) =>
    [name, share(shares.all), share(shares.seen), share(shares.unseen)];
  return [
    make("h3", {}, "Right first answers"),
    table(["", "all", "seen", "unseen"], [
      row("Before", one.before),
      row("With decisions as names", one.names),
      ...(one.after ? [row("With a learned order too", one.after)] : []),
    ], "Right first answers"),
    one.after ? null : make("p", {}, missing > 0
      ? `About ${countOf(missing, "more mention")} until an order of the candidates can be learned.`
      : "No learned order of the candidates was better than the one that is used, so that one stays."),
    ...(one.lost.length ? [
      make("h3", {}, "Right before, wrong now"),
      make("ul", { class: "found" }, ...one.lost.map((/** @type {any} */ lost) =>
        make("li", {}, placesOf(`${lost.text}, ${names.get(lost.cui) ?? lost.cui}: ${countOf(lost.mentions, "mention")}, now ${lost.now ? names.get(lost.now) ?? lost.now : "no concept"}`,
          { chosen: lost.cui })))),
    ] : []),
    pairs([
      ["Learned from", `${countOf(one.counts.mentions, "mention")} in ${countOf(one.counts.documents, "note")}`],
      ["Least score of a link", one.threshold === null ? "" : share(one.threshold)],
      ["Links that are right", one.precision === null ? "" : share(one.precision)],
      ["Mentions that are linked right", one.recall === null ? "" : share(one.recall)],
    ]),
  ];
}
