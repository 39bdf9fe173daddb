// A workflow: its nodes from left to right, each behind those it waits for, and the same as a table; a large one by
// levels.

import { count, element, svg } from "./tools.js";

const WIDTH = 150;
const HEIGHT = 46;
const BOX = 122;
const TALL = 34;
const LETTERS = 17;
const ORDER = ["running", "queued", "pre-script", "post-script", "ready", "held", "failed", "futile", "done", "waiting", "other"];
let isOpen = false;
let from = 0;

const cut = (text) => (text.length > LETTERS ? `${text.slice(0, LETTERS - 1)}…` : text);
const inWords = (counts) => ORDER.filter((state) => counts[state]).map((state) => `${counts[state].toLocaleString()} ${state}`).join(", ");

function label(text, x, y, name) {
  const made = svg("text", { x, y, class: name });
  made.textContent = text;
  return made;
}

function picture(dag, schedd) {
  const left = (node) => node.level * WIDTH + 4;
  const top = (node) => node.row * HEIGHT + 4;
  const width = Math.max(...dag.nodes.map(left)) + BOX + 4;
  const height = Math.max(...dag.nodes.map(top)) + TALL + 4;
  const lines = dag.edges.map(([parent, child]) => {
    const [a, b] = [dag.nodes[parent], dag.nodes[child]];
    const [x1, y1, x2, y2] = [left(a) + BOX, top(a) + TALL / 2, left(b), top(b) + TALL / 2];
    return svg("path", { class: "edge", d: `M${x1} ${y1}C${x1 + 14} ${y1} ${x2 - 14} ${y2} ${x2} ${y2}` });
  });
  const boxes = dag.nodes.map((node) => {
    const group = svg("g", { class: `node n-${node.state}` });
    const title = svg("title");
    title.textContent = `${node.name}: ${node.state}`;
    group.append(title, svg("rect", { x: left(node), y: top(node), width: BOX, height: TALL, rx: 5 }),
      label(cut(node.name), left(node) + 6, top(node) + 14, "name"), label(node.state, left(node) + 6, top(node) + 28, "how"));
    if (!node.job) return group;
    return svg("a", { href: jobOf(schedd, node), tabindex: "-1" }, group);
  });
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "dag", "aria-hidden": "true" },
    ...lines, ...boxes);
}

function table(heads, rows) {
  return element("table", {}, element("caption", { class: "unseen" }, "The nodes of the workflow"),
    element("thead", {}, element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, ...rows.map(([first, ...others]) => element("tr", {},
      element("th", { scope: "row" }, first), ...others.map((text) => element("td", {}, text))))));
}

function wide(name, inner) {
  return element("div", { class: "wide", role: "region", "aria-label": name, tabindex: "0" }, inner);
}

const jobOf = (schedd, node) => `#job/${encodeURIComponent(schedd)}/${node.job}`;

export function draw(dag, schedd) {
  const parts = [element("h3", {}, "Its workflow"),
    element("p", {}, `${count(dag.total, "node")}: ${inWords(dag.counts)}.`)];
  if (!dag.nodes.length) {
    const rows = dag.levels.map((counts, level) => [String(level + 1), inWords(counts)]);
    return [...parts, wide("Levels of the workflow", table(["Level", "Nodes"], rows))];
  }
  const view = wide("Picture of the workflow", picture(dag, schedd));
  view.addEventListener("scroll", () => { from = view.scrollLeft; });
  requestAnimationFrame(() => { view.scrollLeft = from; });
  const parents = dag.nodes.map(() => []);
  for (const [parent, child] of dag.edges) parents[child].push(dag.nodes[parent].name);
  const rows = dag.nodes.map((node, at) => [
    node.job ? element("a", { href: jobOf(schedd, node) }, node.name) : node.name, node.state, parents[at].join(", ")]);
  const details = element("details", { class: "nodes", open: isOpen }, element("summary", {}, "As a table"),
    wide("Table of the workflow's nodes", table(["Node", "State", "Waits for"], rows)));
  details.addEventListener("toggle", () => { isOpen = details.open; });
  return [...parts, view, details];
}
