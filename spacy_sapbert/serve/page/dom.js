// Elements are made here, and texts are only ever text nodes: no HTML is parsed.

const AT_ONCE = 200;  // rows of a long table

/**
 * @param {string} name
 * @param {{[key: string]: any}} options attributes, and listeners such as `onclick`
 * @param {...(Node|string|null|undefined|false)} children
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

/**
 * @param {Element} element
 * @param {...(Node|string|null|undefined|false)} children
 */
export function fill(element, ...children) {
  element.replaceChildren(.../** @type {(Node|string)[]} */ (
    children.filter((child) => child !== null && child !== undefined && child !== false)));
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

/** Says something in the part of the page that is opened next. @param {string} text */
export function sayLater(text) {
  addEventListener("hashchange", () => setTimeout(() => say(text)), { once: true });
}

/** The text as a browser shows it. @param {string} text */
export function withLineFeeds(text) {
  return text.replace(/\r\n?/g, "\n");
}

/** @param {number} count @param {string} one @param {string} many */
export function countOf(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** A time of the service in words of this place. @param {string} time */
export function localTime(time) {
  return new Date(time).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}

/** @param {[string, any][]} rows */
export function pairs(rows) {
  const list = make("dl");
  for (const [name, value] of rows) {
    if (value === null || value === undefined || value === "") continue;
    list.append(make("dt", {}, name), make("dd", {}, typeof value === "number" ? String(value) : value));
  }
  return list;
}

/**
 * @param {string[]} header
 * @param {any[][]} rows
 * @param {string} label
 */
export function table(header, rows, label) {
  const isNumber = (/** @type {number} */ place) => rows.some((row) => typeof row[place] === "number");
  const cell = (/** @type {any} */ value) =>
    make("td", { class: typeof value === "number" ? "number" : null },
      value instanceof Node ? value : String(value ?? "–"));
  const head = (/** @type {string} */ name, /** @type {number} */ place) =>
    make(name ? "th" : "td", { scope: name ? "col" : null, class: isNumber(place) ? "number" : null }, name);
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    make("table", {},
      make("thead", {}, make("tr", {}, ...header.map(head))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell))))));
}

/**
 * A table that shows its first rows, and the next ones when a button is pressed; on a
 * phone each row is a card.
 * @param {(string|Node)[]} head
 * @param {(item: any) => (Node|string|null|undefined|false)[]} cellsOf
 * @param {string} label
 * @param {{[key: string]: any}} options of the table
 */
export function growingTable(head, cellsOf, label, options = {}) {
  const body = make("tbody");
  const more = make("p", {});
  let shown = AT_ONCE;
  const cell = (/** @type {any} */ value, /** @type {number} */ place) => {
    const title = head[place];
    return make("td", { "data-head": title instanceof Node ? title.textContent : title }, value);
  };
  const row = (/** @type {any} */ item) => make("tr", {}, ...cellsOf(item).map(cell));
  /** @param {any[]} items */
  const draw = (items) => {
    const button = make("button", { type: "button", onclick: () => {
      body.append(...items.slice(shown, shown + AT_ONCE).map(row));
      shown += AT_ONCE;
      count();
    } });
    const count = () => {
      const left = items.length - shown;
      if (left > 0) button.textContent = `Show more (${left.toLocaleString("en")} left)`;
      else fill(more);
    };
    fill(body, ...items.slice(0, shown).map(row));
    fill(more, button);
    count();
  };
  const titles = head.map((one) => make(one ? "th" : "td", { scope: one ? "col" : null }, one));
  const element = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    make("table", { ...options, class: `cards ${options.class ?? ""}` }, make("thead", {}, make("tr", {}, ...titles)), body), more);
  return { element, body, row, draw };
}

/**
 * A choice of one value, with its label.
 * @param {string} id
 * @param {string} text
 * @param {string[][]} options values and what is shown
 * @param {string} value
 * @param {(value: string) => void} onchange
 * @returns {Node[]}
 */
export function select(id, text, options, value, onchange) {
  const field = make("select", { id, onchange: () => onchange(field.value) },
    ...options.map(([one, shown]) => make("option", { value: one }, shown)));
  field.value = value;
  return [make("label", { for: id }, text), field];
}

/**
 * A score in words, with the number for those who want it.
 * @param {any} candidate
 * @param {boolean} ordered the order is by probabilities, which scores do not follow
 */
export function strength(candidate, ordered = false) {
  const { score, probability } = candidate;
  if (probability !== null && probability !== undefined) {
    return make("span", { class: "strength", title: `score ${score}` }, `${Math.round(100 * probability)} %`);
  }
  if (score === null || score === undefined) return make("span", { class: "strength" });
  const word = score === 1 ? "exact" : score >= 0.9 ? "strong" : score >= 0.75 ? "fair" : "weak";
  return make("span", { class: "strength", title: `score ${score.toFixed(3)}` }, ordered ? "" : word);
}

/** @param {Blob} blob @param {string} name */
export function download(blob, name) {
  const address = URL.createObjectURL(blob);
  const anchor = make("a", { href: address, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/**
 * @param {HTMLElement} element
 * @param {(files: File[]) => void} onfiles
 */
export function dropZone(element, onfiles) {
  element.classList.add("drop");
  element.addEventListener("dragover", (event) => {
    event.preventDefault();
    element.classList.add("over");
  });
  element.addEventListener("dragleave", () => element.classList.remove("over"));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    element.classList.remove("over");
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length) onfiles(files);
  });
  return element;
}

/**
 * A button that asks before it does what cannot be taken back.
 * @param {string} text
 * @param {string} question
 * @param {() => void} act
 */
export function sureButton(text, question, act) {
  const button = make("button", { type: "button", class: "quiet" }, text);
  const reset = () => { button.textContent = text; button.classList.remove("bad"); };
  button.addEventListener("click", () => {
    if (button.textContent === question) { reset(); act(); return; }
    button.textContent = question;
    button.classList.add("bad");
  });
  button.addEventListener("blur", reset);
  return button;
}
