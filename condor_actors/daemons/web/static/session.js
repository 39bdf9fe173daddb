// Who is logged in, and the questions that change something. A session has two secrets: one is in a cookie, which no
// script can read; the other is kept here, where no page of another address can read it, and goes into a header.

import { byId, exactDate } from "./tools.js";

const HEADER = "X-Condor-Session";
const KEPT = "condor-session";
const NOBODY = { user: "", levels: [], ends: 0, refusal: "" };
let secret = localStorage.getItem(KEPT) || "";
let current = NOBODY;
let changed = () => {};

export const user = () => current.user;
export const mayAct = () => current.levels.includes("WRITE");
export const owns = (owner) => mayAct() && [current.user, current.user.split("@")[0]].includes(owner);

function become(session) {
  current = session;
  if (!session.user) {
    secret = "";
    localStorage.removeItem(KEPT);
  }
  const ends = session.ends ? `, until ${exactDate(session.ends)}` : "";
  byId("user-name").textContent = session.user ? `Logged in as ${session.user}` : "";
  byId("user-name").title = session.user ? `${session.user}${ends}` : "";
  byId("log-in").hidden = Boolean(session.user || session.refusal);
  byId("log-out").hidden = !session.user;
  changed();
}

export async function send(path, fields) {
  const answer = await fetch(path, {
    method: "POST", body: JSON.stringify(fields), credentials: "same-origin",
    headers: { "Content-Type": "application/json", [HEADER]: secret || "none" } });
  const data = await answer.json().catch(() => ({ error: answer.statusText }));
  if (answer.ok) return data;
  if (answer.status === 401 && secret) become(NOBODY);
  throw new Error(data.error || answer.statusText);
}

async function look() {
  try {
    const answer = await fetch("api/session", { headers: secret ? { [HEADER]: secret } : {} });
    if (answer.ok) become(await answer.json());
  } catch { /* the stream of changes says that nobody answers */ }
}

async function logIn(event) {
  event.preventDefault();
  const token = byId("token").value.trim();
  byId("login-send").disabled = true;
  byId("login-problem").textContent = "";
  try {
    const { secret: given, ...session } = await send("api/login", { token });
    secret = given;
    localStorage.setItem(KEPT, secret);
    byId("login").close();
    become(session);
    byId("log-out").focus();
  } catch (error) {
    byId("login-problem").textContent = `You are not logged in: ${error.message}`;
    byId("token").focus();
  } finally {
    byId("login-send").disabled = false;
  }
}

async function logOut() {
  try {
    become(await send("api/logout", {}));
    byId("log-in").focus();
  } catch (error) {
    byId("problem").textContent = `You are still logged in: ${error.message}`;
    byId("problem").hidden = false;
  }
}

export function start(then) {
  changed = then;
  byId("log-in").addEventListener("click", () => { byId("login-problem").textContent = ""; byId("login").showModal(); });
  byId("login-cancel").addEventListener("click", () => byId("login").close());
  byId("login").addEventListener("close", () => { byId("token").value = ""; });
  byId("login-form").addEventListener("submit", logIn);
  byId("log-out").addEventListener("click", logOut);
  addEventListener("storage", (event) => {
    if (event.key === KEPT) { secret = event.newValue || ""; look(); }
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && secret) look(); });
  look();
}
