// Charts of the pool over time, as lines in SVG, each with a table of the same numbers for those who do not see it.

import { ask, byId, date, element, roomIn, svg } from "./tools.js";

const HEIGHT = 180;
const LEFT = 52;
const CHARTS = [
  ["Utilisation", "share of the cores", [["running", "jobs", 100], ["owner", "owners", 100]], "%", 100],
  ["Queue length", "jobs", [["idle_jobs", "idle", 1], ["running_jobs", "running", 1], ["held_jobs", "held", 1]], "", 0],
  ["Wait ratio", "how long jobs that ended had waited, for each second that they ran", [["wait_ratio", "wait ratio", 1]], "", 0],
  ["Leverage", "capacity for each second that the submit machine spent", [["leverage", "leverage", 1]], "", 0],
];
let isOpen = false;

function path(points, key, scale, x, y) {
  let drawn = "";
  let pen = "M";
  for (const point of points) {
    if (point[key] === null) { pen = "M"; continue; }
    drawn += `${pen}${x(point.at).toFixed(1)} ${y(point[key] * scale).toFixed(1)}`;
    pen = "L";
  }
  return drawn;
}

function chart(data, [title, text, lines, unit, least]) {
  const values = data.points.flatMap((point) => lines.map(([key, , scale]) => (point[key] ?? 0) * scale));
  const top = Math.max(least, ...values) || 1;
  const width = roomIn("charts");
  const x = (at) => LEFT + (at - data.from) / (data.to - data.from) * (width - LEFT - 8);
  const y = (value) => HEIGHT - 24 - value / top * (HEIGHT - 40);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" });
  for (const value of [0, top / 2, top]) {
    const label = svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" });
    label.textContent = `${Number(value.toPrecision(3)).toLocaleString()}${unit}`;
    picture.append(svg("line", { class: "axis", x1: LEFT, x2: width - 8, y1: y(value), y2: y(value) }), label);
  }
  for (const [at, anchor] of [[data.from, "start"], [data.to, "end"]]) {
    const label = svg("text", { x: x(at), y: HEIGHT - 6, "text-anchor": anchor });
    label.textContent = date(at);
    picture.append(label);
  }
  lines.forEach(([key, , scale], index) => {
    picture.append(svg("path", { class: `l${index + 1}`, d: path(data.points, key, scale, x, y) }));
  });
  return element("figure", {}, element("figcaption", {}, title), element("p", { class: "hint" },
    `${text}: ${lines.map(([, name], index) => `${["solid", "dashed", "dotted"][index]}: ${name}`).join(", ")}`),
    picture, numbers(data, title, lines, unit));
}

function numbers(data, title, lines, unit) {
  const last = data.points.slice(-12).reverse();
  const rows = last.map((point) => element("tr", {}, element("th", { scope: "row" }, date(point.at)),
    ...lines.map(([key, , scale]) => element("td", { class: "number" },
      point[key] === null ? "–" : `${Number((point[key] * scale).toPrecision(4)).toLocaleString()}${unit}`))));
  return element("details", {}, element("summary", {}, `${title} in numbers`), element("table", {},
    element("caption", { class: "unseen" }, title),
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "When"),
      ...lines.map(([, name]) => element("th", { scope: "col", class: "number" }, name)))),
    element("tbody", {}, ...rows)));
}

async function refresh() {
  if (!isOpen) return;
  try {
    const data = await ask("api/figures", { span: byId("span").value });
    const opened = [...byId("charts").querySelectorAll("details")].map((each) => each.open);
    const made = data.points.length ? CHARTS.map((each) => chart(data, each))
      : [element("p", {}, "There are no points of this span yet; one is taken every minute.")];
    byId("charts").replaceChildren(...made);
    byId("charts").querySelectorAll("details").forEach((each, index) => { each.open = Boolean(opened[index]); });
  } catch (error) {
    byId("charts").replaceChildren(element("p", { role: "alert" }, error.message));
  }
}

export function open(is) {
  isOpen = is;
  refresh();
}

export const changed = refresh;

export function start() {
  byId("span").addEventListener("change", refresh);
}
