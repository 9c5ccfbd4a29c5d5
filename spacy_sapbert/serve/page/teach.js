// Teach: versions of the knowledge base that have learned from the decisions, and how the one in use
// answers what was decided.

import { attempt, get, post, remove } from "./api.js";
import { countOf, fill, localTime, make, pairs, say, share, sureButton, table } from "./dom.js";
import { placesOf } from "./places.js";

const WAIT = 1000;  // milliseconds between two questions
const MOST = 50;  // mentions of a list

export async function render(main, info) {
  fill(main, make("h2", {}, "Teach the knowledge base"));
  const why = info.why || (!info.manages && "An admin teaches it.");
  if (why) { main.append(make("p", {}, why)); return; }
  const report = make("div", {});
  const quality = make("div", {});
  const measure = async () => {
    fill(quality, make("p", {}, "Measuring …"));
    const found = await attempt("", () => Promise.all([post("reviews/quality", {}), get("kb")]));
    fill(quality, ...(found ? drawQuality(...found) : []));
  };
  const draw = async (found) => {
    measure();
    const newest = found.report ?? found.versions[0]?.report;
    const show = (names) => fill(report, drawVersions(found, draw), ...(newest ? drawReport(newest, found.fewest, names) : []));
    show(new Map());
    const ids = [...new Set((newest?.lost ?? []).flatMap((one) => [one.cui, one.now]))].filter(Boolean);
    const concepts = await Promise.all(ids.map((id) => get(`concepts/${encodeURIComponent(id)}?related=0`).catch(() => ({ name: id }))));
    if (ids.length) show(new Map(ids.map((id, at) => [id, concepts[at].name])));
  };
  const watch = async () => {
    const found = await attempt("", () => get("reviews/teach"));
    if (!found) return;
    if (found.state === "running") {
      say("Teaching …");
      setTimeout(watch, WAIT);
      return;
    }
    draw(found);
    if (found.error) say(found.error.message, true);
    else if (found.report) say("Learned.");
  };
  const start = async () => {
    if (await attempt("Teaching …", () => post("reviews/teach", {}))) watch();
  };
  main.append(
    make("p", {}, "A new version learns from all decisions that count now, always starting from the original knowledge base. ",
      "Mentions on which reviewers differ are left out until they are settled under ", make("a", { href: "#agree" }, "Agree"),
      ". The figures of versions are by cross-validation: of notes that were not learned from."),
    make("button", { class: "main", id: "teach", onclick: start }, "Teach"),
    report, quality);
  const found = await attempt("Reading …", () => get("reviews/teach"));
  if (found?.state === "running") watch();
  else if (found) draw(found);
  else measure();  // of several processes none teaches
}

function drawVersions(found, draw) {
  if (!found.versions.length) return null;
  const inUse = found.versions.some((one) => one.used);
  const change = (work, text) => async () => {
    const answer = await attempt("Loading …", work);
    if (!answer) return;
    draw(answer);
    say(text);
  };
  const use = (number, text) => change(() => post("reviews/switch", { number }), text);
  const rows = found.versions.map((one, place) => [
    `Version ${one.number}${one.older_base ? ", of an older vocabulary: teach again" : ""}`,
    localTime(one.time), one.report.counts.mentions, share(one.report.before.all), share((one.report.after ?? one.report.names).all),
    one.used ? make("strong", {}, "in use") : make("button", {
      class: place ? "" : "main", id: place ? null : "use", onclick: use(one.number, "The service uses the taught knowledge base."),
    }, "Use"),
    sureButton("Delete", `Delete version ${one.number} for good?`,
      change(() => remove(`reviews/teach/${one.number}`), `Version ${one.number} is deleted.`)),
  ]);
  const back = !inUse ? make("strong", {}, "in use")
    : make("button", { id: "back", onclick: use(null, "The service uses the original again.") }, "Back");
  return make("div", {}, make("h3", {}, "Versions"), table(["Version", "Made", "Mentions", "Right before", "Right after", "Use", ""],
    [...rows, ["Original", null, null, null, null, back, null]], "Versions"));
}

function drawReport(one, fewest, names) {
  const missing = fewest - one.counts.mentions;
  const changed = one.learned.filter((each) => each.cui !== each.before);
  const nameOf = (id) => (id ? names.get(id) ?? id : "no concept");
  const row = (name, shares) => [name, share(shares.all), share(shares.seen), share(shares.unseen)];
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
    one.as_names ? null : make("p", {}, "As names, the mentions would make answers to others worse: they decide for themselves alone."),
    ...(changed.length ? [
      make("h3", {}, "Decided, and linked otherwise before"),
      make("ul", { class: "found" }, ...changed.slice(0, MOST).map((each) => make("li", {},
        placesOf(`${each.text}: ${each.name || "no concept"}`, { text: each.text })))),
      changed.length > MOST ? make("p", {}, `And ${countOf(changed.length - MOST, "more mention")}.`) : null,
    ] : []),
    ...(one.lost.length ? [
      make("h3", {}, "Right before, wrong now"),
      make("ul", { class: "found" }, ...one.lost.map((lost) => make("li", {},
        placesOf(`${lost.text}, ${nameOf(lost.cui)}: ${countOf(lost.mentions, "mention")}, now ${nameOf(lost.now)}`, { chosen: lost.cui })))),
    ] : []),
    pairs([
      ["Learned from", `${countOf(one.counts.mentions, "mention")} in ${countOf(one.counts.documents, "note")}`],
      ["A link needs at least", share(one.threshold)],
    ]),
    one.thresholds.length ? table(
      ["If a link needs at least", "Links that are right", "Mentions that are linked right", "Without a concept, and not linked"],
      one.thresholds.map((at) => [at.threshold, at.precision, at.recall, at.nil_recall].map(share)), "Links by probability") : null,
  ];
}

/** How the knowledge base in use answers what was decided. */
function drawQuality(found, kb) {
  return [
    make("h3", {}, "The knowledge base in use"),
    ...(found.mentions ? [
      make("p", {}, `It answers the ${countOf(found.mentions, "mention")} that were decided, without the texts around. `,
        kb.taught && "It has learned from decisions, so these figures are too good."),
      pairs([
        ["First candidate is right", share(found.first)],
        ["Links that are right", share(found.precision)],
        ["Mentions that are linked right", share(found.recall)],
      ]),
      make("h3", {}, "Why first candidates are wrong"),
      found.causes.length
        ? table(["Cause", "Mentions", "Examples", "What helps"],
          found.causes.map((one) => [one.cause, one.mentions, make("div", {}, ...one.examples.map((text) => placesOf(text, { text }))), one.advice]),
          "Causes of wrong first candidates")
        : make("p", {}, "None is wrong."),
    ] : [make("p", {}, "Nothing is decided yet. Decide some mentions under Notes or in the Queue.")]),
  ];
}
