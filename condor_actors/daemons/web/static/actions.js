// What a user who is logged in can do with a job that is shown; the schedd decides whether it is done.

import { confirmed } from "./confirm.js";
import { owns, send, user } from "./session.js";
import { byId, element } from "./tools.js";

const LABELS = { hold: "Hold", release: "Release", suspend: "Suspend", continue: "Continue", vacate: "Vacate",
  checkpoint: "Checkpoint", remove: "Remove …" };
const HINTS = { hold: "It stays in the queue and does not run", release: "It may run again",
  suspend: "Its program stands still on its machine", continue: "Its program goes on",
  vacate: "It leaves its machine and runs elsewhere", checkpoint: "Its state is saved", remove: "It leaves the queue" };
const OF_STATE = { idle: ["hold"], running: ["hold", "suspend", "vacate"], transferring: ["hold"],
  suspended: ["continue", "hold", "vacate"], held: ["release"] };
const STANDARD = "1";
let story = null;
let drawn = "";
let acted = () => {};

const attribute = (name) => (story.attributes.find(([each]) => each === name) || [])[1];

async function act(path, fields) {
  const shown = story;
  byId("action-result").textContent = "Asking …";
  byId("action-result").className = "";
  try {
    const done = await send(path, { schedd: shown.schedd, jobs: [shown.id], ...fields });
    if (story?.id !== shown.id) return;
    byId("action-result").textContent = done.results.map((each) => each.text).join(" ") || done.text;
    byId("action-result").className = done.count ? "" : "failed";
  } catch (error) {
    if (story?.id !== shown.id) return;
    byId("action-result").textContent = `This was not done: ${error.message}`;
    byId("action-result").className = "failed";
  }
  acted();
}

function press(action) {
  if (action !== "remove") { act("api/act", { action }); return; }
  const shown = story;
  confirmed({ title: `Remove job ${shown.id}?`, yes: "Remove", no: "Keep it",
    text: "Its program is ended, and the job leaves the queue. This cannot be undone." }, () => {
    if (story?.id === shown.id && story.schedd === shown.schedd) act("api/act", { action: "remove", reason: "by the web page" });
  });
}

function buttons() {
  const actions = [...(OF_STATE[story.status] || [])];
  if (story.status === "running" && attribute("JobUniverse") === STANDARD) actions.push("checkpoint");
  return [...actions, "remove"].map((action) => element("button", {
    type: "button", title: HINTS[action], "data-action": action, onclick: () => press(action) }, LABELS[action]));
}

function priority() {
  const input = element("input", { id: "priority", type: "number", step: "1", min: "-1000000", max: "1000000",
    value: attribute("JobPrio") || "0", required: true });
  return element("form", { "aria-label": "Priority of this job",
    onsubmit: (event) => { event.preventDefault(); act("api/priority", { priority: Number(input.value) }); } },
  element("label", { for: "priority" }, "Priority"), input, element("button", {}, "Set"));
}

function draw() {
  const group = byId("actions");
  const is = Boolean(story && !story.left && owns(story.owner) && story.status !== "removed");
  const now = is ? [story.schedd, story.id, story.status, attribute("JobUniverse"), user()].join("|") : "";
  if (now === drawn) return;
  drawn = now;
  const had = group.contains(document.activeElement) ? document.activeElement.dataset.action || "priority" : "";
  group.hidden = !is;
  group.replaceChildren(...(is ? [...buttons(), priority()] : []));
  if (had) (group.querySelector(`[data-action="${had}"]`) || group.querySelector("button") || byId("main")).focus();
}

export function show(told) {
  story = told;
  draw();
}

export function close() {
  story = null;
  byId("action-result").textContent = "";
  draw();
}

export const userChanged = draw;

export function start(then) {
  acted = then;
}
