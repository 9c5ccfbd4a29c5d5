// Quality: how the knowledge base in use answers the mentions that were decided.

import { attempt, post } from "./api.js";
import { fill, make, pairs, share, table } from "./dom.js";
import { placesOf } from "./places.js";

export async function render(main, info) {
  fill(main, make("h2", {}, "Quality"));
  if (info.why) { main.append(make("p", {}, info.why)); return; }
  const found = await attempt("Measuring …", () => post("reviews/quality", {}));
  if (!found) return;
  if (!found.mentions) {
    main.append(make("p", {}, "Nothing is decided yet. Decide some mentions under Notes or in the Queue."));
    return;
  }
  main.append(
    make("p", {}, "The answers of the knowledge base in use to all mentions that were decided, without their texts around. ",
      info.taught && "It has learned from decisions, so those figures are too good: Teach shows those of cross-validation."),
    pairs([
      ["Mentions decided", found.mentions.toLocaleString("en")],
      ["Of them no concept", found.without_concept.toLocaleString("en")],
      ["First candidate is right", share(found.first)],
      ["Right one among five", share(found.near)],
      ["Links that are right", share(found.precision)],
      ["Mentions that are linked right", share(found.recall)],
      ["No concept, and not linked", share(found.none)],
    ]),
    make("h3", {}, "Why first candidates are wrong"),
    found.causes.length
      ? table(["Cause", "Mentions", "Examples", "What helps"],
        found.causes.map((one) => [one.cause, one.mentions, make("div", {}, ...one.examples.map((text) => placesOf(text, { text }))), one.advice]),
        "Causes of wrong first candidates")
      : make("p", {}, "None is wrong."));
}
