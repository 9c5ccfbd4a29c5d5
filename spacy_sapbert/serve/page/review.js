// Review: documents, agreement of reviewers, and files of the decisions.

import { attempt, get, send } from "/page/api.js";
import { download, fill, make, say, table } from "/page/dom.js";

export async function render(main, reviews) {
  fill(main, make("h2", {}, "Decisions"));
  if (!reviews) {
    main.append(make("p", {}, "Start the service with --reviews FILE to keep decisions."));
    return;
  }
  const found = await attempt("Reading …", async () => ({
    ...(await get("/reviews/documents")), ...(await get("/reviews/agreement")),
  }));
  if (!found) return;
  say("");
  const who = make("select", { id: "who" }, make("option", { value: "" }, "all reviewers"),
    ...found.reviewers.map((name) => make("option", { value: name }, name)));
  const kind = make("select", { id: "kind" },
    ...found.formats.map((name) => make("option", { value: name }, name)));
  main.append(
    table(["Document", "Characters", "Decisions", "Since"],
      found.documents.map((one) => [one.name, one.characters, one.decisions, one.time.slice(0, 16)]),
      "Documents"),
    make("h2", {}, "Agreement"),
    found.pairs.length ? table(["Reviewers", "Mentions of both", "Agree", "Cohen’s kappa"],
      found.pairs.map((one) => [one.reviewers.join(" and "), one.mentions, one.agree, one.kappa]),
      "Agreement") : make("p", {}, "There is one reviewer or none."),
    make("h2", {}, "Download"),
    make("div", { class: "row" },
      make("label", { for: "who" }, "Of"), who, make("label", { for: "kind" }, "as"), kind,
      make("button", { id: "export", onclick: () => save(kind.value, who.value) }, "Download")));
}

async function save(format, who) {
  const path = `/reviews/export?format=${format}${who ? `&reviewer=${encodeURIComponent(who)}` : ""}`;
  const found = await attempt("Writing …", async () => {
    const answer = await send(path);
    const name = answer.headers.get("content-disposition").match(/"(.+)"/)[1];
    return [await answer.blob(), name];
  });
  if (!found) return;
  download(...found);
  say("Downloaded.");
}
