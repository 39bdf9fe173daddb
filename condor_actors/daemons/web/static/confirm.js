// The question that is asked before jobs are changed: one dialog for all; what is safe has the focus.

import { byId } from "./tools.js";

let agreed = () => {};

export function confirmed({ title, text, yes, no }, then) {
  byId("confirm-title").textContent = title;
  byId("confirm-text").textContent = text;
  byId("confirm-yes").textContent = yes;
  byId("confirm-no").textContent = no;
  agreed = then;
  byId("confirm").showModal();
}

export function start() {
  byId("confirm-no").addEventListener("click", () => byId("confirm").close());
  byId("confirm-yes").addEventListener("click", () => {
    byId("confirm").close();
    agreed();
  });
}
