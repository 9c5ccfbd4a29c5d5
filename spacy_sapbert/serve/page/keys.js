// The one table of commands, and what a key does in a part of the page. A key acts on the
// item that is on the screen when it is pressed, never on one that comes later.

import { NIL, shownChoice } from "./state.js";

/**
 * @typedef {{name: string, keys: string[], shown: string, text: string, moves?: boolean}} Command if it moves, a
 *   key that is held goes on
 *
 * @typedef {object} Bench where keys act: a note, the queue, a column
 * @property {() => any} item what is on the screen, with its `mention`; null = nothing
 * @property {() => string} busy what it is doing; keys do nothing meanwhile
 * @property {(text: string) => void} say
 * @property {(item: any, chosen: string, candidate?: any) => void} choose
 * @property {(step: number) => void} move
 * @property {string[]} [arrows] keys that move in its list
 * @property {(running: boolean) => void} search a concept is searched for, or no more
 * @property {{[command: string]: (item: any) => void}} more other commands that it has
 */

/** @type {Command[]} */
export const COMMANDS = [
  { name: "accept", keys: ["Enter"], shown: "Enter", text: "what is shown" },
  { name: "sure", keys: ["a"], shown: "a", text: "accept all that are sure" },
  { name: "take", keys: [..."123456789"], shown: "1–9", text: "a candidate" },
  { name: "none", keys: ["0"], shown: "0", text: "no concept" },
  { name: "noMention", keys: ["x"], shown: "x", text: "not a mention" },
  { name: "next", keys: ["n", "ArrowRight", "ArrowDown"], shown: "n", text: "next", moves: true },
  { name: "previous", keys: ["p", "ArrowLeft", "ArrowUp"], shown: "p", text: "previous", moves: true },
  { name: "search", keys: ["/"], shown: "/", text: "search" },
  { name: "about", keys: ["i"], shown: "i", text: "about the concept" },
  { name: "context", keys: ["t"], shown: "t", text: "negated, past, family, suspected" },
  { name: "comment", keys: ["k"], shown: "k", text: "comment" },
  { name: "everywhere", keys: ["e"], shown: "e", text: "the same everywhere" },
  { name: "mark", keys: ["m"], shown: "m", text: "mark" },
  { name: "change", keys: ["c"], shown: "c", text: "change to the selected text" },
  { name: "relate", keys: ["r"], shown: "r", text: "exact, broad, narrow, related" },
  { name: "undo", keys: ["u"], shown: "u", text: "undo" },
  { name: "done", keys: ["d"], shown: "d", text: "done, next note" },
];

/** The commands of a part of the page. @param {Bench} bench */
export function commandsOf(bench) {
  const all = ["accept", "take", "none", "next", "previous", "search", "about", ...Object.keys(bench.more)];
  return COMMANDS.filter((one) => all.includes(one.name));
}

/**
 * Does what a key means, and returns whether it is one of this part.
 * @param {{key: string, repeat?: boolean}} event @param {Bench} bench @param {{inList: boolean, onButton: boolean}} focus
 */
export function press({ key, repeat = false }, bench, { inList, onButton }) {
  const command = commandsOf(bench).find((one) => one.keys.includes(key));
  if (!command || (key === "Enter" && onButton) || (key.startsWith("Arrow") && !(inList && bench.arrows?.includes(key)))) return false;
  if (repeat && !command.moves) return true;  // a key that is held decides once
  const doing = bench.busy();
  if (doing) bench.say(`This key did nothing: ${doing}`);
  else run(command, key, bench);
  return true;
}

/** @param {Command} command @param {string} key @param {Bench} bench */
function run({ name, moves }, key, bench) {
  const item = bench.item();
  if (moves) bench.move(name === "next" ? 1 : -1);
  else if (name in bench.more) bench.more[name](item);
  else if (!item) bench.say("There is nothing to decide.");
  else if (name === "none") bench.choose(item, NIL);
  else if (name === "accept") accept(item, bench);
  else {
    const candidate = item.mention.candidates[Number(key) - 1];
    if (candidate) bench.choose(item, candidate.cui);
    else bench.say(item.mention.pending ? "Its candidates are still looked up." : `There is no candidate ${key}.`);
  }
}

function accept(item, bench) {
  const { mention } = item;
  const chosen = shownChoice(mention);
  if (chosen !== null) bench.choose(item, chosen);
  else if (mention.pending) bench.say("Its candidates are still looked up.");
  else bench.say(`${mention.certainty === "tied" ? "Several concepts fit" : "Not sure"}: press 1–9 for the right one, or 0 for none.`);
}
