// Teach: a copy of the knowledge base that has learned from the decisions.

import { attempt, get, post } from "/page/api.js";
import { fill, make, pairs, say, table } from "/page/dom.js";
import { plot } from "/page/plot.js";

const WAIT = 1000;  // milliseconds between two questions

export async function render(main, reviews) {
  fill(main, make("h2", {}, "Teach the knowledge base"));
  if (!reviews) {
    main.append(make("p", {}, "Start the service with --reviews FILE to keep decisions."));
    return;
  }
  const force = make("input", { type: "checkbox", id: "force" });
  const report = make("div", {});
  main.append(
    make("p", {}, "A copy of the knowledge base learns from all decisions. All figures are by ",
      "cross-validation: of documents that were not learned from."),
    make("div", { class: "row" },
      make("button", {
        class: "main", id: "teach",
        onclick: () => start(report, force.checked),
      }, "Teach"),
      force, make("label", { for: "force" }, "also if nothing gets better")),
    report);
  const found = await attempt("", () => get("/reviews/teach"));
  if (found?.state === "running") watch(report);
  else if (found) draw(report, found);
}

async function start(report, force) {
  if (await attempt("Teaching …", () => post("/reviews/teach", { force }))) watch(report);
}

async function watch(report) {
  const found = await attempt("Teaching …", () => get("/reviews/teach"));
  if (!found) return;
  if (found.state === "running") setTimeout(() => watch(report), WAIT);
  else draw(report, found);
}

function draw(report, found) {
  if (found.error) return say(found.error.message, true);
  if (!found.report) return say("");
  const one = found.report;
  const share = (value) => (value === null ? "–" : value.toFixed(3));
  const row = (name, shares) => [name, share(shares.all), share(shares.seen), share(shares.unseen)];
  say(one.changed ? "Learned." : "Nothing gets better, so no copy was made.");
  fill(report,
    make("h3", {}, "Right first answers"),
    table(["", "all", "seen", "unseen"], [
      row("Before", one.before),
      row("With decisions as names", one.names),
      ...(one.after ? [row("With a learned order too", one.after)] : []),
    ], "Right first answers"),
    curve(one.curve, share),
    pairs([
      ["Documents", String(one.counts.documents)],
      ["Mentions", String(one.counts.mentions)],
      ["Threshold", one.threshold === null ? "" : share(one.threshold)],
      ["Precision of links", one.precision === null ? "" : share(one.precision)],
      ["Recall of links", one.recall === null ? "" : share(one.recall)],
      ["Folder", found.folder ?? ""],
    ]),
    found.folder && !found.used
      ? make("button", { class: "main", id: "use", onclick: () => use(report) }, "Use it from now on")
      : found.used ? make("p", {}, "The service uses it.") : null);
}

function curve(points, share) {
  const line = (key) => points.filter((one) => one[key] !== null).map((one) => [one.documents, one[key]]);
  return make("div", {},
    make("h3", {}, "Learning curve"),
    plot([{ name: "names", points: line("names") }, { name: "order too", points: line("after") }],
      { most: points.at(-1).documents, title: "Right first answers by documents learned from", across: "documents" }),
    table(["Documents", "names", "order too"],
      points.map((one) => [String(one.documents), share(one.names), share(one.after)]), "Learning curve"));
}

async function use(report) {
  const found = await attempt("Loading …", () => post("/reviews/switch", {}));
  if (!found) return;
  draw(report, found);
  say("The service uses the taught knowledge base.");
}
