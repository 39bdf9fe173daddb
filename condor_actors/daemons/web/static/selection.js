// Several jobs of the queue at once: which are chosen (also on other pages of the table), the question before something
// is done to them, and what became of each.

import { confirmed } from "./confirm.js";
import { mayAct, owns, send } from "./session.js";
import { byId, count, element } from "./tools.js";

const MOST = 500;
const NAMED = 5;
const LABELS = { hold: "Hold", release: "Release", remove: "Remove" };
const HINTS = { hold: "They stay in the queue and do not run until they are released.", release: "They may run again.",
  remove: "Their programs are ended, and they leave the queue. This cannot be undone." };
const chosen = new Map();
let anchor = "";
let isAsking = false;

export const keyOf = (schedd, id) => `${schedd}/${id}`;
const boxes = () => [...byId("jobs").tBodies[0].querySelectorAll("input[data-job]")];

function set(box, is) {
  const key = box.dataset.job;
  if (is && !chosen.has(key) && chosen.size < MOST) chosen.set(key, { schedd: box.dataset.schedd, id: box.dataset.id });
  if (!is) chosen.delete(key);
  box.checked = chosen.has(key);
}

export function drawn() {
  const shown = boxes();
  for (const box of shown) box.closest("tr").classList.toggle("chosen", box.checked);
  const all = byId("choose-all");
  if (all) {
    const some = shown.filter((box) => box.checked).length;
    all.checked = some > 0 && some === shown.length;
    all.indeterminate = some > 0 && some < shown.length;
    all.disabled = !shown.length;
  }
  byId("selection").hidden = !mayAct();
  const text = `${count(chosen.size, "job")} chosen${chosen.size >= MOST ? ", which is the most at once" : ""}`;
  if (byId("chosen").textContent !== text) byId("chosen").textContent = text;
  for (const button of byId("selection").querySelectorAll("button")) button.disabled = !chosen.size || isAsking;
}

export function cell(schedd, id, owner) {
  if (!owns(owner)) return element("td", { class: "choice" });
  const key = keyOf(schedd, id);
  const box = element("input", { type: "checkbox", "aria-label": `Choose job ${id}`, "data-job": key,
    "data-schedd": schedd, "data-id": id });
  box.checked = chosen.has(key);
  return element("td", { class: "choice" }, box);
}

export function headCell() {
  return element("td", { class: "choice" },
    element("input", { type: "checkbox", id: "choose-all", "aria-label": "Choose all of your jobs that are shown" }));
}

function clicked(event) {
  const box = event.target.closest("input[data-job]");
  if (!box) return;
  const shown = boxes();
  const from = event.shiftKey ? shown.findIndex((each) => each.dataset.job === anchor) : -1;
  const to = shown.indexOf(box);
  const is = box.checked;
  for (const each of from < 0 ? [box] : shown.slice(Math.min(from, to), Math.max(from, to) + 1)) set(each, is);
  anchor = box.dataset.job;
  drawn();
}

function pressed(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const box = event.target.closest("input[data-job]");
  if (!step || !box) return;
  event.preventDefault();
  const shown = boxes();
  const next = shown[shown.indexOf(box) + step];
  if (!next) return;
  if (event.shiftKey) {
    set(next, box.checked);
    anchor = next.dataset.job;
    drawn();
  }
  next.focus();
}

function tell(action, results) {
  const done = results.filter((each) => each.result === "success").length;
  const failed = results.filter((each) => each.isFailed);
  const words = { hold: "held", release: "released", remove: "removed" };
  byId("selection-summary").textContent = `${done} of ${count(results.length, "job")} ` +
    `${results.length === 1 ? "was" : "were"} ${words[action]}.`;
  byId("selection-list").replaceChildren(...[...failed, ...results.filter((each) => !each.isFailed)].map((each) =>
    element("li", { class: each.isFailed ? "failed" : "" }, each.text)));
  byId("selection-results").hidden = false;
}

async function act(action, jobs) {
  isAsking = true;
  byId("selection-summary").textContent = "Asking …";
  byId("selection-results").hidden = true;
  drawn();
  const bySchedd = new Map();
  for (const { schedd, id } of jobs) bySchedd.set(schedd, [...(bySchedd.get(schedd) || []), id]);
  const results = [];
  for (const [schedd, ids] of bySchedd) {
    try {
      const answer = await send("api/act", { schedd, jobs: ids, action, reason: "by the web page" });
      for (const each of answer.results) {
        results.push({ ...each, isFailed: !["success", "already-done"].includes(each.result) });
        if (each.result === "success") chosen.delete(keyOf(schedd, each.job));
      }
    } catch (error) {
      results.push(...ids.map((id) => ({ result: "error", isFailed: true, text: `Job ${id}: ${error.message}.` })));
    }
  }
  isAsking = false;
  tell(action, results);
  for (const box of boxes()) box.checked = chosen.has(box.dataset.job);
  drawn();
  byId("selection-results").focus();
}

function ask(action) {
  const jobs = [...chosen.values()];
  if (!jobs.length) return;
  const rest = jobs.length - NAMED;
  const names = jobs.slice(0, NAMED).map((each) => each.id).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
  confirmed({ title: `${LABELS[action]} ${count(jobs.length, "job")}?`, text: `${names}. ${HINTS[action]}`,
    yes: LABELS[action], no: "Leave them as they are" }, () => act(action, jobs));
}

export function userChanged() {
  if (!mayAct()) {
    chosen.clear();
    byId("selection-summary").textContent = "";
    byId("selection-results").hidden = true;
  }
  drawn();
}

export function start() {
  const body = byId("jobs").tBodies[0];
  body.addEventListener("click", clicked);
  body.addEventListener("keydown", pressed);
  byId("jobs").tHead.addEventListener("change", (event) => {
    if (event.target.id !== "choose-all") return;
    for (const box of boxes()) set(box, event.target.checked);
    drawn();
  });
  byId("selection").addEventListener("click", (event) => {
    const action = event.target.closest("button")?.dataset.action;
    if (action) ask(action);
  });
  byId("choose-none").addEventListener("click", () => {
    chosen.clear();
    for (const box of boxes()) box.checked = false;
    drawn();
    byId("jobs").tHead.querySelector("input")?.focus();
  });
}
