// Requests to the service of this page.

import { make, said, say } from "./dom.js";

let token = sessionStorage.getItem("token");
/** Answers that came with the page, which are used once. @type {Map<string, any>} */
const given = new Map(Object.entries(JSON.parse(/** @type {any} */ (document.getElementById("answers")).textContent)));

/** An answer that is not a success; the status is 0 if there was no answer. */
const failure = (message, status) => Object.assign(new Error(message), { status });

/** @param {RequestInit} options @returns {Promise<Response>} */
export async function send(path, options = {}) {
  const headers = new Headers(options.headers);
  const used = token;
  if (token) headers.set("authorization", `Bearer ${token}`);
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch {
    throw failure("The service does not answer. Is it still running?", 0);
  }
  if (answer.status === 401) {
    if (token !== used) return send(path, options);  // another request has asked for it
    const given = prompt("The token of this service:");
    if (given) {
      token = given.trim();
      sessionStorage.setItem("token", token);
      return send(path, options);
    }
  }
  if (!answer.ok) {
    let text = `The service answered with ${answer.status}.`;
    try { text = (await answer.json()).error.message; } catch { /* no JSON */ }
    // Options of the commands are no help here.
    throw failure(text.replace(/,? or pass `--[^.]*\./, "."), answer.status);
  }
  return answer;
}

export async function get(path) {
  const answer = given.get(path);
  if (given.delete(path)) return answer;
  return (await send(path)).json();
}

/** A request that has data. */
export const withJson = (data) => ({ method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(data) });

export async function post(path, data) {
  return (await send(path, withJson(data))).json();
}

export async function remove(path) {
  return (await send(path, { method: "DELETE" })).json();
}

/** Runs a function, and shows meanwhile what it does; an error is shown too, and null is returned. */
export async function attempt(doing, work) {
  if (doing) say(doing);
  try {
    const result = await work();
    if (doing && said() === doing) say("");
    return result;
  } catch (error) {
    say(error.message, true);
    return null;
  }
}

/** Downloads a file that the service writes, and returns whether it did. */
export async function saveFile(path, options = {}) {
  const answer = await attempt("Writing …", () => send(path, options));
  if (!answer) return false;
  saveBlob(answer.headers.get("content-disposition")?.match(/"(.+)"/)?.[1], await answer.blob());
  return true;
}

/** Downloads what the page has made. @param {string|undefined} name @param {Blob} blob */
export function saveBlob(name, blob) {
  const address = URL.createObjectURL(blob);
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
  say("Downloaded.");
}

/** The name at the top. */
export const reviewer = () => nameField().value.trim();

export const nameField = () => /** @type {HTMLInputElement} */ (document.getElementById("reviewer"));

/** Whether a name is there; if not, it is asked for. */
export function hasName() {
  if (reviewer()) return true;
  say("Write your name at the top first.", true);
  nameField().focus();
  return false;
}

export function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
