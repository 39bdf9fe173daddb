// The pool map: a square for each slot, machine by machine; only squares that changed are touched.

import { byId, count, date, element, memory, span } from "./tools.js";

const LOOKS = {
  running: "running a job", free: "free", owner: "with its owner", suspended: "job waits for the owner",
  leaving: "job is leaving", matched: "claimed", drained: "drained",
};
const slots = new Map();
const squares = new Map();
const machines = new Map();
let chosen = "";
let current = "";

const isShown = (slot) => !(slot.parent && slot.cpus === 0);

function describe(slot) {
  const who = slot.user ? `, ${slot.user}` : "";
  return `${slot.name}: ${LOOKS[slot.look] || slot.look}${who}`;
}

const order = new Intl.Collator("en", { numeric: true }).compare; // slot2 comes before slot10

function square(slot) {
  let made = squares.get(slot.name);
  if (!made) {
    made = element("button", { type: "button", tabindex: "-1" });
    made.dataset.slot = slot.name;
    squares.set(slot.name, made);
    insert(group(slot.machine), made, (each) => each.dataset.slot);
  }
  made.className = `square ${slot.look in LOOKS ? slot.look : "owner"}`;
  const text = describe(slot);
  made.setAttribute("aria-label", text);
  made.title = text;
}

function group(machine) {
  let made = machines.get(machine);
  if (!made) {
    made = element("div", { class: "machine", role: "group", "aria-label": machine });
    machines.set(machine, made);
    insert(byId("map"), made, (each) => each.getAttribute("aria-label"));
  }
  return made;
}

function insert(place, made, nameOf) {
  let before = place.lastElementChild;
  while (before && order(nameOf(before), nameOf(made)) > 0) before = before.previousElementSibling;
  place.insertBefore(made, before ? before.nextSibling : place.firstChild);
}

function drop(name) {
  const old = squares.get(name);
  slots.delete(name);
  squares.delete(name);
  if (!old) return;
  const from = old.parentElement;
  old.remove();
  if (!from.childElementCount) {
    machines.delete(from.getAttribute("aria-label"));
    from.remove();
  }
}

export function begin(all) {
  const names = new Set(all.map((slot) => slot.name));
  change(all, [...slots.keys()].filter((name) => !names.has(name)));
}

export function change(changed, gone) {
  for (const name of gone) drop(name);
  if (!machines.size && changed.length) changed.sort((a, b) => order(a.machine, b.machine) || order(a.name, b.name));
  for (const slot of changed) {
    slots.set(slot.name, slot);
    if (isShown(slot)) square(slot);
    else if (squares.has(slot.name)) { drop(slot.name); slots.set(slot.name, slot); }
  }
  byId("map").classList.toggle("named", machines.size <= 60);
  if (!squares.has(current)) reach(byId("map").querySelector("button"));
  if (chosen && changed.some((slot) => slot.name === chosen)) show(chosen);
  if (chosen && !slots.has(chosen)) byId("slot").hidden = true;
}

export function legend(summary) {
  const list = byId("legend");
  const items = Object.entries(LOOKS).map(([look, text]) => element("li", {},
    element("span", { class: `square ${look}`, "aria-hidden": "true" }), `${summary.slots[look] || 0} ${text}`));
  list.replaceChildren(...items);
}

function reach(made) {
  const old = squares.get(current);
  if (old) old.tabIndex = -1;
  current = made ? made.dataset.slot : "";
  if (made) made.tabIndex = 0;
}

function show(name) {
  const slot = slots.get(name);
  if (!slot) return;
  chosen = name;
  const lines = [
    ["State", `${slot.state} / ${slot.activity}`], ["Since", date(slot.since)], ["Cores", slot.cpus],
    ["Memory", memory(slot.memory)], ["Load", slot.load],
    ["Owner idle", slot.idle < 0 ? "not known" : span(slot.idle)], ["System", slot.system], ["User", slot.user],
  ].filter(([, value]) => value !== "");
  const list = element("dl", {}, ...lines.flatMap(([name_, value]) => [
    element("dt", {}, name_), element("dd", {}, String(value))]));
  if (slot.job && slot.schedd) {
    list.append(element("dt", {}, "Job"), element("dd", {},
      element("a", { href: `#job/${encodeURIComponent(slot.schedd)}/${encodeURIComponent(slot.job)}` }, slot.job)));
  }
  byId("slot").replaceChildren(element("h3", {}, slot.name), list);
  byId("slot").hidden = false;
}

export function start() {
  const map = byId("map");
  map.addEventListener("click", (event) => {
    const made = event.target.closest("button");
    if (made) { reach(made); show(made.dataset.slot); }
  });
  map.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const all = [...map.querySelectorAll("button")];
    const at = all.indexOf(document.activeElement);
    let next;
    if (step && at >= 0) next = all[Math.min(all.length - 1, Math.max(0, at + step))];
    else if (event.key === "Home") next = all[0];
    else if (event.key === "End") next = all[all.length - 1];
    if (next) { event.preventDefault(); reach(next); next.focus(); }
  });
}

export const line = (summary) => {
  const busy = summary.cpus.running || 0;
  const all = Object.values(summary.cpus).reduce((sum, each) => sum + each, 0);
  const jobs = summary.jobs;
  return `${busy} of ${count(all, "core")} at work; ${count(jobs.running || 0, "job")} running, ${jobs.idle || 0} idle` +
    (jobs.held ? `, ${jobs.held} held` : "");
};
