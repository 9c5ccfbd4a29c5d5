
"use strict";
// The page is complete without this script, which adds the filter.
{
  const form = document.getElementById("filter");
  const overview = document.getElementById("overview");
  const words = document.getElementById("words");
  const wide = matchMedia("print, (min-width: 60rem)");
  const lines = overview.querySelectorAll("nav li");
  let documents;

  function readDocuments() {
    return Array.from(document.querySelectorAll("article"), (article, number) => ({
      article,
      line: lines[number],
      entities: Array.from(article.querySelectorAll(".entity"), (entity) => ({
        entity,
        text: ["mark, .quote", ".title"]
          .map((part) => entity.querySelector(part)?.textContent)
          .join(" ")
          .toLowerCase(),
      })),
    }));
  }

  const chosen = (name) =>
    Array.from(form.querySelectorAll(`[name="${name}"]:checked`), (box) => box.value);

  function show() {
    documents ??= readDocuments();
    const text = words.value.trim().toLowerCase();
    const groups = chosen("group");
    const kinds = chosen("kind");
    const has = (entity, kind) => entity.classList.contains(kind);
    const wanted = ({ entity, text: own }) =>
      own.includes(text) &&
      (!groups.length || groups.some((group) => has(entity, group))) &&
      (!kinds.length || kinds.some((kind) => has(entity, kind)));
    const filtered = Boolean(text || groups.length || kinds.length);
    let count = 0;
    let all = 0;
    let matching = 0;
    for (const { article, line, entities } of documents) {
      let found = 0;
      for (const each of entities) {
        const on = wanted(each);
        each.entity.classList.toggle("off", !on);
        each.entity.tabIndex = on ? 0 : -1;
        found += on;
      }
      article.hidden = line.hidden = filtered && !found;
      matching += !article.hidden;
      count += found;
      all += entities.length;
    }
    form.querySelector("button").hidden = !filtered;
    document.getElementById("shown").value = filtered
      ? `${count} of ${all} entities in ${matching} of ${documents.length} documents.`
      : "";
  }

  document.documentElement.classList.add("script");
  document.querySelector("main").before(document.querySelector("aside"));
  const fold = () => {
    overview.open = wide.matches;
  };
  wide.addEventListener("change", fold);
  fold();
  form.addEventListener("input", show);
  form.addEventListener("reset", () => setTimeout(show));
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("focusin", (event) => {
    if (event.target.matches(".entity")) event.target.scrollIntoView({ block: "nearest" });
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") document.activeElement.blur();
  });
}
