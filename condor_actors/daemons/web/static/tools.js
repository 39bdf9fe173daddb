// What the views share: making elements (text is always text, never markup), dates, and questions to the server.

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

export function svg(name, properties = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(properties)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export const byId = (id) => document.getElementById(id);

// How wide a picture there may be: as wide as its place, so that its letters are as large on a phone as elsewhere.
export const roomIn = (id) => Math.min(900, byId(id).clientWidth || 900);

const DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const SECOND = new Intl.DateTimeFormat(undefined, {
  month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });

const LAST_S = 253402214400; // no calendar has a later one, and formatting it would fail

const isDate = (seconds) => seconds > 0 && seconds <= LAST_S;
export const date = (seconds) => (isDate(seconds) ? DAY.format(seconds * 1000) : "");
export const exactDate = (seconds) => (isDate(seconds) ? SECOND.format(seconds * 1000) : "");

export function span(seconds) {
  if (!(seconds >= 0)) return "";
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor(seconds / 3600) % 24} h`;
}

export function memory(mib) {
  return mib >= 10240 ? `${Math.round(mib / 1024)} GiB` : `${mib} MiB`;
}

export const count = (number, one, many = one + "s") =>
  `${number.toLocaleString()} ${number === 1 ? one : many}`;

export async function ask(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== undefined);
  const query = new URLSearchParams(given).toString();
  const answer = await fetch(query ? `${path}?${query}` : path);
  const data = await answer.json();
  if (!answer.ok) throw new Error(data.error || answer.statusText);
  return data;
}
