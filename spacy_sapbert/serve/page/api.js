// Requests to the service of this page.

import { said, say } from "./dom.js";

let token = sessionStorage.getItem("token");
/** Answers that came with the page, which are used once. @type {Map<string, any>} */
const given = new Map(Object.entries(JSON.parse(/** @type {any} */ (document.getElementById("answers")).textContent)));

/** An answer that is not a success; `status` is 0 if there was no answer. */
export class ServiceError extends Error {
  /**
   * @param {string} message
   * @param {number} status
   */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/**
 * @param {string} path
 * @param {RequestInit} options
 * @returns {Promise<Response>}
 */
export async function send(path, options = {}) {
  const headers = new Headers(options.headers);
  const used = token;
  if (token) headers.set("authorization", `Bearer ${token}`);
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch {
    throw new ServiceError("The service does not answer. Is it still running?", 0);
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
    throw new ServiceError(text.replace(/,? or pass `--[^.]*\./, "."), answer.status);
  }
  return answer;
}

/** @param {string} path */
export async function get(path) {
  const answer = given.get(path);
  if (given.delete(path)) return answer;
  return (await send(path)).json();
}

/**
 * @param {string} path
 * @param {unknown} data
 */
export async function post(path, data) {
  return (await postFor(path, data)).json();
}

/**
 * @param {string} path
 * @param {unknown} data
 */
export function postFor(path, data) {
  const headers = { "content-type": "application/json" };
  return send(path, { method: "POST", headers, body: JSON.stringify(data) });
}

/** @param {string} path */
export async function remove(path) {
  return (await send(path, { method: "DELETE" })).json();
}

/**
 * Runs a function; an error is shown in the status line, and null is returned.
 * @template T
 * @param {string} doing what is shown meanwhile
 * @param {() => Promise<T>} work
 * @returns {Promise<T|null>}
 */
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

/** The name at the top. */
export function reviewer() {
  return nameField().value.trim();
}

export function nameField() {
  return /** @type {HTMLInputElement} */ (document.getElementById("reviewer"));
}

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
