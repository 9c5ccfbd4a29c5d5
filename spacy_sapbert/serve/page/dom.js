// Elements are made here, and texts are only ever text nodes: no HTML is parsed.

const AT_ONCE = 200;  // rows of a long table

/**
 * Makes an element. Options are attributes, and listeners such as `onclick`; children are nodes and texts,
 * of which null and false are left out.
 * @returns {any}
 */
export function make(name, options = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "value") /** @type {any} */ (element).value = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  return fill(element, ...children);
}

export function fill(element, ...children) {
  element.replaceChildren(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** @param {string} text @param {boolean} bad it is an error */
export function say(text, bad = false) {
  const status = document.getElementById("status");
  if (!status) return;
  status.textContent = text;
  status.classList.toggle("bad", bad);
}

/** What the status line says. */
export const said = () => document.getElementById("status")?.textContent ?? "";

/** What is said when the part of the page that is opened next is there. */
export const later = { text: "" };

/** @param {number} count @param {string} one @param {string} many */
export function countOf(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

export const percent = (value) => `${Math.round(100 * value)} %`;

/** A share of 1 that may be unknown. */
export const share = (value) => (value === null ? "–" : `${(100 * value).toFixed(1)} %`);

/** A time of the service in words of this place. */
export function localTime(time) {
  return new Date(time).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}

/** A list of names with their values; those without a value are left out. */
export function pairs(rows) {
  const list = make("dl");
  for (const [name, value] of rows) {
    if (value === null || value === undefined || value === "") continue;
    list.append(make("dt", {}, name), make("dd", {}, value));
  }
  return list;
}

/**
 * A table that shows its first rows, and the next ones when a button is pressed; on a
 * phone each row is a card. `onrow` gets each row that is made, with its item.
 */
export function growingTable(head, label, cellsOf, options = {}, onrow = (row, item) => {}) {
  const body = make("tbody");
  const more = make("p", { class: "more" });
  const row = (item) => {
    const element = make("tr", {}, ...cellsOf(item).map((cell, place) => make("td", { "data-head": head[place] }, cell)));
    onrow(element, item);
    return element;
  };
  const add = (items, from) => {
    body.append(...items.slice(from, from + AT_ONCE).map(row));
    const left = items.length - from - AT_ONCE;
    fill(more, left > 0 && make("button", { type: "button", onclick: () => add(items, from + AT_ONCE) },
      `Show more (${left.toLocaleString("en")} left)`));
  };
  const titles = head.map((one) => make(one ? "th" : "td", { scope: one ? "col" : null }, one));
  const element = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    make("table", { class: "cards", ...options }, make("thead", {}, make("tr", {}, ...titles)), body), more);
  return { element, row, draw: (items) => { fill(body); add(items, 0); } };
}

/** A table of rows that are known. @param {string[]} head @param {any[][]} rows @param {string} label */
export function table(head, rows, label) {
  const { element, draw } = growingTable(head, label, (row) => row);
  draw(rows);
  return element;
}

/** A choice of one value, with its label; options are values and what is shown. */
export function select(id, text, options, value, onchange) {
  const field = make("select", { id, onchange: () => onchange(field.value) },
    ...options.map(([one, shown]) => make("option", { value: one }, shown)));
  field.value = value;
  return make("label", {}, text, " ", field);
}

/**
 * A score in words, with the number for those who want it; no words if the order is by
 * probabilities, which scores do not follow.
 */
export function strength(candidate, ordered = false) {
  const { score, probability } = candidate;
  if (typeof probability === "number") {
    return make("span", { class: "strength", title: `score ${score}` }, percent(probability));
  }
  if (typeof score !== "number") return make("span", { class: "strength" });
  const word = score === 1 ? "exact" : score >= 0.9 ? "strong" : score >= 0.75 ? "fair" : "weak";
  return make("span", { class: "strength", title: `score ${score.toFixed(3)}` }, ordered ? "" : word);
}

/** A choice of files, which can also be dropped on it. */
export function fileField(id, text, options, onfiles) {
  const field = make("input", { type: "file", id, ...options, onchange: async () => {
    if (field.files.length) await onfiles([...field.files]);
    field.value = "";  // the same files can be taken again
  } });
  return make("label", {}, text, " ", field);
}

/** A button that asks before it does what cannot be taken back. */
export function sureButton(text, question, act) {
  return make("button", { type: "button", class: "quiet", onclick: () => confirm(question) && act() }, text);
}
