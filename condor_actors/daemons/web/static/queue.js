// The queue: one page of rows at a time, sorted and searched by the server; asked for again when the queue has changed.

import * as selection from "./selection.js";
import { mayAct } from "./session.js";
import { ask, byId, count, date, element, memory, span } from "./tools.js";

const STATES = ["idle", "running", "held", "suspended", "transferring", "completed", "removed"];
const HEADS = [
  ["id", "Job"], ["owner", "Owner"], ["status", "State"], ["host", "Where"], ["command", "Command"],
  ["submitted", "Submitted"], ["started", "Runs since"], ["moves", "Moves", true], ["cpu", "Processor", true],
  ["memory", "Memory", true], ["priority", "Priority", true],
];
const view = { search: "", status: "", sort: "id", order: "up", offset: 0, limit: 50 };
const GAP_MS = 2000;
let total = 0;
let shown = -1;
let wanted = 0;
let asking = false;
let askedAt = 0;
let timer;
let isOpen = false;
let serial = 0;
let last = null;

const at = {};

function cells(row) {
  const get = (name) => row[at[name]];
  const id = `${get("cluster")}.${get("proc")}`;
  const state = get("status");
  const why = get("reason");
  return [
    ...(mayAct() ? [selection.cell(get("schedd"), id, get("owner"))] : []),
    element("th", { scope: "row" },
      element("a", { href: `#job/${encodeURIComponent(get("schedd"))}/${id}` }, id)),
    element("td", {}, get("owner")),
    element("td", { title: why }, element("span", { class: `state s-${state}` }, state), why ? `: ${why}` : ""),
    element("td", {}, get("host")), element("td", { title: get("batch") }, get("command")),
    element("td", {}, date(get("submitted"))), element("td", {}, date(get("started"))),
    element("td", { class: "number" }, String(get("moves"))),
    element("td", { class: "number" }, get("cpu") ? span(get("cpu")) : ""),
    element("td", { class: "number" }, get("memory") ? memory(get("memory")) : ""),
    element("td", { class: "number" }, String(get("priority"))),
  ];
}

function head() {
  const row = element("tr", {}, ...(mayAct() ? [selection.headCell()] : []), ...HEADS.map(([name, text, isNumber]) => element("th", {
    scope: "col", class: isNumber ? "number" : "", "data-column": name,
    "aria-sort": view.sort === name ? (view.order === "up" ? "ascending" : "descending") : "none",
  }, element("button", { type: "button" }, text))));
  byId("jobs").tHead.replaceChildren(row);
}

function draw(page) {
  last = page;
  page.columns.forEach((name, index) => { at[name] = index; });
  total = page.total;
  view.offset = page.offset;
  shown = page.version;
  const body = byId("jobs").tBodies[0];
  const had = body.contains(document.activeElement) ? document.activeElement : null;
  body.replaceChildren(...page.rows.map((row) => element("tr", {}, ...cells(row))));
  const job = had?.dataset.job;
  if (had) body.querySelector(job ? `[data-job="${CSS.escape(job)}"]` : `a[href="${CSS.escape(had.getAttribute("href"))}"]`)?.focus();
  selection.drawn();
  const of = page.total === page.all ? "" : ` of ${page.all.toLocaleString()}`;
  byId("count").textContent = page.total || page.all
    ? `${count(page.total, "job")}${of}${page.whole ? "" : "; more are being read"}`
    : page.whole ? "The queue is empty." : "The queue is being read …";
  const end = Math.min(page.offset + view.limit, page.total);
  byId("where").textContent = page.total ? `${page.offset + 1} to ${end} of ${page.total.toLocaleString()}` : "";
  byId("first").disabled = byId("before").disabled = page.offset === 0;
  byId("after").disabled = byId("last").disabled = end >= page.total;
}

async function refresh() {
  clearTimeout(timer);
  timer = undefined;
  if (!isOpen) return;
  asking = true;
  askedAt = performance.now();
  const mine = ++serial;
  const version = wanted;
  try {
    const page = await ask("api/jobs", view);
    if (mine === serial) draw(page);
  } catch (error) {
    if (mine === serial) byId("count").textContent = `The queue cannot be shown: ${error.message}`;
  }
  if (mine === serial) {
    asking = false;
    if (wanted !== version) changed(wanted, true);
  }
}

export function changed(version, isWhole) {
  wanted = version;
  if (!isOpen || timer !== undefined || asking || (version === shown && isWhole)) return;
  timer = setTimeout(refresh, Math.max(0, GAP_MS - (performance.now() - askedAt)));
}

export function open(is) {
  isOpen = is;
  if (is) refresh();
}

export function userChanged() {
  const columns = byId("jobs").tHead.querySelectorAll("tr > *").length;
  if (columns !== HEADS.length + (mayAct() ? 1 : 0)) head();
  if (last) draw(last);
  selection.userChanged();
}

function go(offset) {
  view.offset = Math.max(0, offset);
  refresh();
}

export function start() {
  byId("status").append(...STATES.map((name) => element("option", { value: name }, name)));
  head();
  selection.start();
  let pause;
  byId("search").addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(() => { view.search = byId("search").value.trim(); go(0); }, 200);
  });
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("status").addEventListener("change", () => { view.status = byId("status").value; go(0); });
  byId("jobs").tHead.addEventListener("click", (event) => {
    const name = event.target.closest("th")?.dataset.column;
    if (!name) return;
    view.order = view.sort === name && view.order === "up" ? "down" : "up";
    view.sort = name;
    head();
    byId("jobs").tHead.querySelector(`[data-column="${name}"] button`).focus();
    go(0);
  });
  byId("first").addEventListener("click", () => go(0));
  byId("before").addEventListener("click", () => go(view.offset - view.limit));
  byId("after").addEventListener("click", () => go(view.offset + view.limit));
  byId("last").addEventListener("click", () => go(Math.floor((total - 1) / view.limit) * view.limit));
}
