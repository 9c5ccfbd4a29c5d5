// Elements are made here, and texts are only ever text nodes: no HTML is parsed.

export function make(name, options = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "value") element.value = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children.filter((child) => child !== null));
  return element;
}

export function say(text, bad = false) {
  const status = document.getElementById("status");
  status.textContent = text;
  status.classList.toggle("bad", bad);
}

export function pairs(rows) {
  const list = make("dl");
  for (const [name, value] of rows) {
    if (value === null || value === undefined || value === "") continue;
    list.append(make("dt", {}, name), make("dd", {}, value));
  }
  return list;
}

export function table(header, rows, label) {
  const cell = (value) =>
    make("td", { class: typeof value === "number" ? "number" : null },
      value instanceof Node ? value : String(value ?? "–"));
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    make("table", {},
      make("thead", {}, make("tr", {}, ...header.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell))))));
}

export function score(value, name) {
  if (value === null || value === undefined) return make("span", { class: "dim" }, "–");
  const text = value.toFixed(3);
  return make("span", {},
    make("meter", { min: 0, max: 1, value, "aria-label": `${name} ${text}` }), ` ${text}`);
}

export function download(blob, name) {
  const address = URL.createObjectURL(blob);
  const anchor = make("a", { href: address, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

export function dropZone(element, onfile) {
  element.classList.add("drop");
  const over = (event) => { event.preventDefault(); element.classList.add("over"); };
  element.addEventListener("dragover", over);
  element.addEventListener("dragleave", () => element.classList.remove("over"));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    element.classList.remove("over");
    const [file] = event.dataTransfer.files;
    if (file) onfile(file);
  });
  return element;
}
