// The way of a record through topics and workers with their lag, and the settings of this server.
import { get } from "./api.js";
import { card, count, day, el, facts, id, seconds, words } from "./dom.js";
import { term } from "./glossary.js";

const EVERY = 5;

export class SettingsView {
  constructor() {
    this.ticks = 0;
    this.way = el("div", { class: "wide" }, el("p", { class: "empty" }, "Asking …"));
    this.facts = el("div");
    this.table = el("tbody");
    this.workers = el("div", { class: "wide", id: "workers" });
    this.element = [el("h1", {}, "Settings and topology"),
      card("Workers", this.workers),
      card("The way of a record", this.facts, this.way),
      card("Settings of this server", el("div", { class: "wide" }, el("table", { id: "settings" }, this.table)))];
  }

  take() {}

  show({ workers, source }) {
    const text = JSON.stringify(workers);
    if (text !== this.known) {
      this.known = text;
      this.workers.replaceChildren(workers.length ? el("table", {}, el("thead", {}, el("tr", {}, ["worker", "state", "since", "why", "host and process"].map((name) => el("th", {}, name)))), el("tbody", {}, workers.map(worker)))
        : el("p", { class: "empty" }, source === "demo" ? "The demo needs none." : "No worker has said how it does."));
    }
    if (this.ticks++ % EVERY === 0) this.ask();
  }

  async ask() {
    let found;
    try {
      found = await get("/v1/settings");
    } catch (error) {
      this.way.replaceChildren(el("p", { class: "empty" }, `They cannot be shown: ${error.message}.`));
      return;
    }
    const text = JSON.stringify(found);
    if (text === this.shown) return;
    this.shown = text;
    this.facts.replaceChildren(facts(["release", id(found.version)], [term("scheme"), id(found.scheme)]));
    this.way.replaceChildren(el("table", { id: "roles" }, el("thead", {}, el("tr", {}, ["worker", "group", "reads", "waiting", "writes"].map((name) => el("th", {}, name)))),
      el("tbody", {}, found.roles.map(role))));
    this.table.replaceChildren(...found.settings.map(setting));
  }
}

const lines = (texts) => texts.map((text) => el("div", {}, text));

const worker = ({ worker: name, role, state, since, why }) => el("tr", {},
  el("td", {}, el("strong", {}, role)), el("td", {}, el("span", { class: `chip ${state}` }, el("i", { class: "dot" }), words(state))),
  el("td", { class: "number" }, day(since)), el("td", { class: "wrap" }, id(why)), el("td", {}, id(name)));

const role = ({ role: name, group, reads, writes }) => el("tr", {},
  el("td", {}, el("strong", {}, name)), el("td", {}, id(group)), el("td", {}, lines(reads.map((each) => id(each.topic)))),
  el("td", { class: "number" }, lines(reads.map(waiting))), el("td", {}, lines(writes.map((topic) => id(topic)))));

function waiting({ records, seconds: age }) {
  if (records === null) return el("span", { class: "quiet" }, "never read, or not known");
  return records ? `${count(records)} records, the oldest for ${seconds(age)}` : "nothing";
}

const setting = ({ variable, value, default: usual, help }) => el("tr", { class: value === usual ? "" : "decided" },
  el("td", {}, el("code", {}, id(variable))), el("td", { class: "wrap" }, value === "" ? el("span", { class: "quiet" }, "empty") : id(value)), el("td", { class: "wrap quiet" }, help));
