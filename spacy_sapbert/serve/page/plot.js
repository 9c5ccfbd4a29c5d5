// Plots in SVG, beside a table with the same numbers: lines of shares, and bars of counts.

import { make } from "./dom.js";

const WIDTH = 360, HEIGHT = 220, LEFT = 40, RIGHT = 8, TOP = 8, BOTTOM = 40;

/** @param {string} name @param {{[name: string]: any}} attributes @param {...(Node|string)} children */
function draw(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const y = (/** @type {number} */ share) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share;

/** The lines across, and what is below them. @param {number} most @param {number} high @param {string} across */
function frame(most, high, across) {
  const grid = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
    draw("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(share), y2: y(share) }),
    draw("text", { x: LEFT - 6, y: y(share) + 4, "text-anchor": "end" }, (high * share).toLocaleString("en")),
  ]);
  const axis = [0, most].map((value) =>
    draw("text", { x: value ? WIDTH - RIGHT : LEFT, y: HEIGHT - BOTTOM + 16, "text-anchor": value ? "end" : "start" },
      value.toLocaleString("en")));
  return [...grid, ...axis, draw("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, across)];
}

/** @param {string} title @param {any[]} drawn @param {any[]} key */
function figure(title, drawn, key) {
  return make("figure", {},
    draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title }, ...drawn),
    make("figcaption", {}, `${title} `, ...key));
}

/**
 * Counts of values from 0 to 1, in groups of equal width.
 * @param {{low: number, count: number}[]} groups those that have something
 * @param {{width: number, title: string, across: string}} about
 */
export function histogram(groups, { width, title, across }) {
  const most = Math.max(4, ...groups.map((one) => one.count));
  const high = 4 * Math.ceil(most / 4);  // whole numbers at the lines
  const scale = WIDTH - LEFT - RIGHT;
  const bars = groups.map(({ low, count }) => draw("rect", {
    x: LEFT + scale * low + 1, width: scale * width - 2, y: y(count / high), height: y(0) - y(count / high),
  }));
  return figure(title, [...frame(1, high, across), draw("g", { class: "line-0" }, ...bars)], []);
}

/**
 * @param {{name: string, points: number[][], wanted?: boolean}[]} lines y from 0 to 1; `wanted` = how it
 *   should be
 * @param {{most: number, title: string, across: string}} about
 */
export function plot(lines, { most, title, across }) {
  const x = (/** @type {number} */ value) => LEFT + (WIDTH - LEFT - RIGHT) * value / (most || 1);
  const shown = lines.filter((one) => one.points.length);
  const kind = (/** @type {{name: string, points: number[][], wanted?: boolean}} */ one) => (one.wanted ? "wanted" : `line-${shown.filter((each) => !each.wanted).indexOf(one)}`);
  const drawn = shown.map((one) =>
    draw("g", { class: kind(one) },
      draw("polyline", { points: one.points.map(([a, b]) => `${x(a)},${y(b)}`).join(" ") }),
      ...(one.wanted ? [] : one.points.map(([a, b]) => draw("circle", { cx: x(a), cy: y(b), r: 3.5 })))));
  const key = shown.map((one) => make("span", { class: `key ${kind(one)}` }, one.name));
  return figure(title, [...frame(most, 1, across), ...drawn], key);
}
