// How each worker does, as it has said last.
import { card, day, el, id, words } from "./dom.js";

export class WorkersView {
  constructor() {
    this.workers = el("div", { class: "wide", id: "workers" });
    this.element = [el("h1", {}, "Workers"), card("How they do", this.workers)];
  }

  take() {}

  show({ workers, source }) {
    const text = JSON.stringify(workers);
    if (text === this.known) return;
    this.known = text;
    this.workers.replaceChildren(workers.length ? el("table", {}, el("thead", {}, el("tr", {}, ["worker", "state", "since", "why", "host and process"].map((name) => el("th", {}, name)))), el("tbody", {}, workers.map(worker)))
      : el("p", { class: "empty" }, source === "kafka" ? "No worker has said how it does." : "One process needs none."));
  }
}

const worker = ({ worker: name, role, state, since, why }) => el("tr", {},
  el("td", {}, el("strong", {}, role)), el("td", {}, el("span", { class: `chip ${state}` }, el("i", { class: "dot" }), words(state))),
  el("td", { class: "number" }, day(since)), el("td", { class: "wrap" }, id(why)), el("td", {}, id(name)));
