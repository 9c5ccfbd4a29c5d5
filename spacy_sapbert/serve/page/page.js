// The parts of the page, chosen by the address after "#".

import { attempt, get } from "/page/api.js";
import * as column from "/page/column.js";
import { say } from "/page/dom.js";
import * as link from "/page/link.js";
import * as look from "/page/look.js";
import * as quality from "/page/quality.js";
import * as review from "/page/review.js";
import * as teach from "/page/teach.js";

const PARTS = ["link", "column", "review", "teach", "quality", "look"];
const main = document.getElementById("main");
const name = document.getElementById("reviewer");
let part = "";

async function show() {
  const [wanted, rest] = location.hash.slice(1).split("/", 2);
  part = PARTS.includes(wanted) ? wanted : "link";
  for (const anchor of document.querySelectorAll("nav a")) {
    if (anchor.hash === `#${part}`) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  document.title = `${part[0].toUpperCase()}${part.slice(1)} – spacy-sapbert`;
  const info = await attempt("Reading …", () => get("/kb"));
  if (!info) return;
  say("");
  if (part === "link") link.render(main, info.reviews);
  else if (part === "column") column.render(main);
  else if (part === "review") await review.render(main, info.reviews);
  else if (part === "teach") await teach.render(main, info.reviews);
  else if (part === "quality") await quality.render(main, info);
  else await look.render(main, info, rest ? decodeURIComponent(rest) : "");
  document.body.dataset.part = part;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest?.("input, textarea, select")) return;
  if (part === "link") link.onkey(event);
});
name.value = localStorage.getItem("reviewer") ?? "";
name.addEventListener("change", () => localStorage.setItem("reviewer", name.value));
addEventListener("hashchange", show);
if (await attempt("Reading …", link.loadGroups)) await show();
