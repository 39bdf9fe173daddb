// A job's story: a time line of its runs on their hosts, and every line that the schedd tells, for readers and ears.

import * as actions from "./actions.js";
import * as dag from "./dag.js";
import { ask, byId, element, exactDate, roomIn, span, svg } from "./tools.js";

const ROW = 26;
const LETTER = 6.8; // wide, of a label
let shown = null;
let timer;

function timeLine(story, now) {
  const hosts = [...new Set(story.runs.map((run) => run.host || "this machine"))];
  const times = [...story.events.map((each) => each.at), ...story.runs.map((run) => run.ended)].filter((each) => each > 0);
  const from = Math.min(...times);
  const to = Math.max(story.left ? 0 : now, ...times, from + 1);
  const width = roomIn("story");
  const left = Math.min(190, width * 0.28);
  const most = Math.floor(left / LETTER);
  const x = (seconds) => left + (seconds - from) / (to - from) * (width - left - 10);
  const height = hosts.length * ROW + 30;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  hosts.forEach((host, index) => {
    const text = svg("text", { x: 0, y: index * ROW + 18 });
    text.textContent = host.length > most ? `${host.slice(0, most - 1)}…` : host;
    picture.append(text, svg("line", { class: "axis", x1: left, x2: width, y1: (index + 1) * ROW, y2: (index + 1) * ROW }));
  });
  for (const run of story.runs) {
    const end = run.ended || to;
    picture.append(svg("rect", {
      class: run.ended ? "bar" : "bar unfinished", x: x(run.began), width: Math.max(2, x(end) - x(run.began)), rx: 2,
      y: hosts.indexOf(run.host || "this machine") * ROW + 5, height: ROW - 10 }));
  }
  for (const each of story.events.filter((one) => one.kind === "checkpoint")) {
    picture.append(svg("circle", { class: "mark", cx: x(each.at), cy: height - 24, r: 4 }));
  }
  const isNarrow = width < 500;
  for (const [at, place, anchor] of [[from, isNarrow ? 0 : x(from), "start"], [to, x(to), "end"]]) {
    const text = svg("text", { x: place, y: height - 5, "text-anchor": anchor });
    text.textContent = exactDate(at);
    picture.append(text);
  }
  return picture;
}

function runs(story) {
  if (!story.runs.length) return element("p", {}, "It has not run yet.");
  const moves = story.runs.length - 1;
  const hosts = new Set(story.runs.map((run) => run.host)).size;
  return element("p", {}, `${story.runs.length} ${story.runs.length === 1 ? "run" : "runs"} on ${hosts} ` +
    `${hosts === 1 ? "slot" : "slots"}${moves ? `, moved ${moves} ${moves === 1 ? "time" : "times"}` : ""}.`);
}

function placeOfFocus() {
  const had = byId("story").contains(document.activeElement) ? document.activeElement : null;
  if (!had) return "";
  if (had.tagName === "SUMMARY") return "summary";
  const name = had.hasAttribute("href") ? "href" : "aria-label";
  return `${name === "href" ? "details a" : "div"}[${name}="${CSS.escape(had.getAttribute(name) || "")}"]`;
}

function draw(story) {
  const had = placeOfFocus();
  const now = Date.now() / 1000;
  actions.show(story);
  byId("job-title").textContent = `Job ${story.id} of ${story.owner}`;
  const list = element("ol", { class: "story" }, ...story.events.map((each) => element("li", { class: each.kind },
    element("time", { datetime: new Date(each.at * 1000).toISOString() }, exactDate(each.at)), each.text)));
  const table = element("dl", {}, ...story.attributes.flatMap(([name, value]) => [
    element("dt", {}, name),
    element("dd", {}, /Date$|^QDate$|^LastCkptTime$/.test(name) ? exactDate(Number(value)) : value)]));
  const entered = story.events.length ? story.events[story.events.length - 1].at : 0;
  byId("story").replaceChildren(
    element("p", {}, element("span", { class: `state s-${story.status}` }, story.status),
      entered && !story.left ? ` for ${span(now - entered)}` : "", story.left ? "; it has left the queue" : ""),
    runs(story), ...(story.runs.length ? [timeLine(story, now)] : []),
    ...(story.dag ? dag.draw(story.dag, story.schedd) : []), element("h3", {}, "What happened"), list, element("h3", {}, "What its ad says"), table);
  if (had) (byId("story").querySelector(had) || byId("main")).focus({ preventScroll: true });
}

export async function refresh() {
  if (!shown) return;
  const mine = shown;
  try {
    const story = await ask("api/job", mine);
    if (mine === shown) draw(story);
  } catch (error) {
    if (mine === shown) byId("story").replaceChildren(element("p", { role: "alert" }, error.message));
  }
}

export function open(schedd, id) {
  const [cluster, proc] = id.split(".");
  actions.close();
  byId("job-title").textContent = `Job ${id}`;
  byId("story").replaceChildren(element("p", {}, "Asking …"));
  shown = { schedd, cluster, proc: proc || "0" };
  refresh();
}

export function close() {
  shown = null;
  actions.close();
}

export function changed() {
  if (!shown || timer !== undefined) return;
  timer = setTimeout(() => { timer = undefined; refresh(); }, 3000);
}
