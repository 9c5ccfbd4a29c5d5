// Requests to the service of this page.

import { say } from "/page/dom.js";

let token = sessionStorage.getItem("token");

export async function send(path, options = {}) {
  const headers = { ...options.headers };
  if (token) headers.authorization = `Bearer ${token}`;
  const answer = await fetch(path, { ...options, headers });
  if (answer.status === 401) {
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
    throw new Error(text);
  }
  return answer;
}

export async function get(path) {
  return (await send(path)).json();
}

export async function post(path, data) {
  return (await postFor(path, data)).json();
}

export function postFor(path, data) {
  const headers = { "content-type": "application/json" };
  return send(path, { method: "POST", headers, body: JSON.stringify(data) });
}

// Runs a function; an error is shown in the status line.
export async function attempt(doing, work) {
  say(doing);
  try {
    const result = await work();
    return result === undefined ? true : result;
  } catch (error) {
    say(error.message, true);
    return null;
  }
}

export function reviewer() {
  return document.getElementById("reviewer").value.trim();
}

export function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
