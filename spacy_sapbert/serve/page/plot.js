// Plots of shares: lines in SVG, beside a table with the same numbers.

import { make } from "./dom.js";

const WIDTH = 360, HEIGHT = 220, LEFT = 40, RIGHT = 8, TOP = 8, BOTTOM = 40;

/** @param {string} name @param {{[name: string]: any}} attributes @param {...(Node|string)} children */
function draw(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/**
 * @param {{name: string, points: number[][], wanted?: boolean}[]} lines y from 0 to 1; `wanted` = how it
 *   should be
 * @param {{most: number, title: string, across: string}} about
 */
export function plot(lines, { most, title, across }) {
  const x = (/** @type {number} */ value) => LEFT + (WIDTH - LEFT - RIGHT) * value / (most || 1);
  const y = (/** @type {number} */ value) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value;
  const grid = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
    draw("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(share), y2: y(share) }),
    draw("text", { x: LEFT - 6, y: y(share) + 4, "text-anchor": "end" }, String(share)),
  ]);
  const axis = [0, most].map((value) =>
    draw("text", { x: x(value), y: HEIGHT - BOTTOM + 16, "text-anchor": value ? "end" : "start" },
      value.toLocaleString("en")));
  axis.push(draw("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, across));
  const shown = lines.filter((one) => one.points.length);
  const kind = (/** @type {{name: string, points: number[][], wanted?: boolean}} */ one) => (one.wanted ? "wanted" : `line-${shown.filter((each) => !each.wanted).indexOf(one)}`);
  const drawn = shown.map((one) =>
    draw("g", { class: kind(one) },
      draw("polyline", { points: one.points.map(([a, b]) => `${x(a)},${y(b)}`).join(" ") }),
      ...(one.wanted ? [] : one.points.map(([a, b]) => draw("circle", { cx: x(a), cy: y(b), r: 3.5 })))));
  const key = shown.map((one) => make("span", { class: `key ${kind(one)}` }, one.name));
  return make("figure", {},
    draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title },
      ...grid, ...axis, ...drawn),
    make("figcaption", {}, `${title} `, ...key));
}
