// The page: which view is open (the part of the address after #), and the stream of changes that feeds the views.

import * as actions from "./actions.js";
import * as confirm from "./confirm.js";
import * as figures from "./figures.js";
import * as pool from "./pool.js";
import * as queue from "./queue.js";
import * as session from "./session.js";
import * as story from "./story.js";
import { ask, byId, element, memory, span } from "./tools.js";

const VIEWS = ["pool", "queue", "job", "figures", "machines"];
const LOOKS = { running: "running", free: "free", owner: "owner", suspended: "suspended", leaving: "leaving",
  matched: "claimed", drained: "drained" };
let view = "";
let place = "";
let machinesAt = 0;

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function open() {
  const [name, ...rest] = location.hash.slice(1).split("/");
  if (name === "main") { byId("main").focus(); return; }
  const before = place;
  place = location.hash.split("/").slice(0, 3).join("/");
  view = VIEWS.includes(name) ? name : "pool";
  for (const each of VIEWS) byId(each).hidden = each !== view;
  for (const link of document.querySelectorAll("nav a")) {
    const own = link.getAttribute("href").slice(1);
    if (own === view || (own === "queue" && view === "job")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  queue.open(view === "queue");
  figures.open(view === "figures");
  if (view === "job") story.open(decoded(rest[0] || ""), decoded(rest[1] || "0.0"));
  else story.close();
  if (view === "machines") machines();
  document.title = `${byId(`${view}-title`).textContent} – Condor`;
  if (before && before !== place) byId("main").focus();
}

async function machines() {
  machinesAt = performance.now();
  const body = byId("machine-table").tBodies[0];
  try {
    const { machines: all } = await ask("api/machines");
    body.replaceChildren(...all.map((each) => element("tr", {},
      element("th", { scope: "row" }, each.machine), element("td", {}, each.system),
      element("td", { class: "number" }, String(each.cpus)), element("td", { class: "number" }, memory(each.memory)),
      element("td", { class: "number" }, each.load.toFixed(2)),
      element("td", { class: "number" }, each.idle < 0 ? "" : span(each.idle)),
      element("td", {}, Object.entries(each.looks).map(([look, many]) => `${many} ${LOOKS[look] || look}`).join(", ")))));
  } catch (error) {
    body.replaceChildren(element("tr", {}, element("td", { colspan: 7 }, error.message)));
  }
}

function summary(data) {
  const text = pool.line(data);
  if (byId("state").textContent !== text) byId("state").textContent = text;
  pool.legend(data);
  queue.changed(data.version, data.whole);
  story.changed();
  if (view === "machines" && performance.now() - machinesAt > 10000) machines();
  const problem = data.problems.join("; ");
  if (byId("problem").textContent !== problem) byId("problem").textContent = problem;
  byId("problem").hidden = !problem;
}

async function refused() {
  setTimeout(listen, 10000);
  const answer = await fetch("api/summary").catch(() => undefined);
  if (answer?.status === 401) byId("problem").textContent = (await answer.json()).error;
}

function listen() {
  const stream = new EventSource("api/events");
  const on = (name, then) => stream.addEventListener(name, (event) => {
    performance.mark("update");
    then(JSON.parse(event.data));
    performance.measure(`update-${name}`, "update");
    document.body.dataset.fresh = name;
  });
  on("begin", (data) => { pool.begin(data.slots); summary(data.summary); });
  on("slots", (data) => pool.change(data.changed, data.gone));
  on("summary", summary);
  on("figures", () => figures.changed());
  stream.onerror = () => {
    byId("problem").textContent = "The page's server does not answer; what you see may be old. It is tried again.";
    byId("problem").hidden = false;
    if (stream.readyState === EventSource.CLOSED) refused();
  };
}

pool.start();
queue.start();
figures.start();
actions.start(story.refresh);
confirm.start();
session.start(() => { actions.userChanged(); queue.userChanged(); });
addEventListener("hashchange", open);
open();
listen();
