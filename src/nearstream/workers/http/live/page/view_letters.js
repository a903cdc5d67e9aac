// Records that no worker could read: for which reasons, their bytes, and how to send them again.
import { get } from "./api.js";
import { spark } from "./charts.js";
import { card, clock, count, day, el, facts, id, to, words } from "./dom.js";

const EVERY = 5, COLUMNS = 16, SHOWN = 60;

export class LettersView {
  constructor(reason) {
    this.reason = reason ?? null;
    this.reasons = el("ul", { class: "rows", id: "reasons" });
    this.table = el("tbody");
    this.replay = this.reason && !this.reason.includes(" ") && new Replay(this.reason);  // a site or a sender has a blank
    this.ticks = 0;
    this.element = [
      el("h1", {}, "Dead letters"),
      el("div", { class: "columns" },
        el("div", { class: "lists" }, card("Why records were refused", this.reasons), this.replay?.element),
        card(this.reason ? `The newest: ${words(this.reason)}` : "The newest",
          el("table", { id: "letters" }, this.table))),
    ];
  }

  take() {}

  show({ source }) {
    if (this.replay) this.replay.element.hidden = source !== "kafka";
    if (this.ticks++ % EVERY === 0) this.ask();
  }

  async ask() {
    let found;
    try {
      found = await get("/v1/dead-letters");
    } catch (error) {
      this.reasons.replaceChildren(el("li", { class: "empty" }, `They cannot be shown: ${error.message}.`));
      return;
    }
    const text = JSON.stringify(found);
    if (text === this.shown) return;
    this.shown = text;
    this.reasons.replaceChildren(...found.reasons.map((each) => reasonRow(each, this.reason)));
    if (!found.reasons.length) this.reasons.append(el("li", { class: "empty" }, found.why ? `They cannot be read: ${found.why}.` : "Every record was read."));
    const own = found.letters.filter((letter) => [null, letter.reason, letter.came_from].includes(this.reason)).slice(0, SHOWN);
    this.table.replaceChildren(...own.map(letterRow));
    if (!own.length) this.table.append(el("tr", {}, el("td", { class: "empty" }, "None is in the memory of the server.")));
  }
}

function reasonRow({ reason, count: number, minutes, newest }, current) {
  const hour = minutes.reduce((sum, each) => sum + each, 0);
  return el("li", {}, el("a", { class: "family", href: reason === current ? to("letters") : to("letters", reason), "aria-current": reason === current && "true" },
    el("span", { class: "name" }, id(words(reason)), el("small", {}, `the last at ${day(newest)}`)),
    spark(minutes, "Dead letters in each minute of the last hour"),
    el("span", { class: "n up" }, hour ? `+${count(hour)}` : "–", el("small", { class: "quiet" }, "1 hour")),
    el("span", { class: "n" }, count(number), el("small", { class: "quiet" }, "read"))));
}

const letterRow = (letter) => el("tr", {},
  el("td", {}, el("time", { title: day(letter.written_at) }, clock(letter.written_at))),
  el("td", { class: "id" }, el("a", { href: to("letter", letter.id) }, id(words(letter.reason))), el("small", { class: "quiet" }, " ", id(letter.detail), ", from ", id(letter.came_from))),
  el("td", { class: "n" }, `${count(letter.size)} bytes`));

/** Count what would be sent, then send it once that is confirmed. */
class Replay {
  constructor(reason) {
    this.reason = reason;
    this.answer = el("p", { class: "quiet", "aria-live": "polite" }, "Repair the producer or the settings first: a record that is refused again comes back here.");
    this.button = el("button", { type: "button", class: "main", id: "replay", onclick: () => this.next() }, "Count what can be sent again");
    this.element = card("Send again", this.answer, this.button);
    this.isCounted = false;
  }

  async next() {
    const dryRun = !this.isCounted;
    this.button.disabled = true;
    try {
      const headers = { "Content-Type": "application/json" };
      const body = JSON.stringify({ reason: this.reason, dry_run: dryRun });
      const { sent, skipped } = await get("/v1/replay", { method: "POST", headers, body });
      const causes = Object.entries(skipped).map(([cause, number]) => `${count(number)} ${cause}`).join(", ");
      this.answer.textContent = `${count(sent)} ${dryRun ? "would be sent" : "were sent"}${causes ? `; skipped: ${causes}` : ""}.`;
      this.isCounted = dryRun && sent > 0;
      this.button.textContent = this.isCounted ? `Send ${count(sent)} again` : "Count what can be sent again";
    } catch (error) {
      this.answer.textContent = `Nothing is known of what was sent: ${error.message}.`;
    }
    this.button.disabled = false;
  }
}

export class LetterView {
  constructor(name) {
    this.element = [el("p", { class: "empty" }, "Looking …")];
    this.load(name ?? "");
  }

  take() {}

  show() {}

  async load(name) {
    let shown;
    try {
      shown = letterPage(await get(`/v1/dead-letters/${encodeURIComponent(name)}`));
    } catch (error) {
      shown = [card("Dead letter", el("h1", {}, id(name)), el("p", { class: "empty" }, `There is nothing to show: ${error.message}.`))];
    }
    const main = document.getElementById("main");
    if (main.contains(this.element[0])) main.replaceChildren(...shown);
    this.element = shown;
  }
}

function letterPage({ letter, sha256, payload, key, headers, value }) {
  return [
    el("section", { class: "card", id: "letter" },
      el("div", { class: "head" }, el("h2", {}, "Dead letter"), el("a", { class: "right", href: to("letters", letter.reason) }, "all of this reason")),
      el("h1", {}, id(words(letter.reason))), el("p", {}, id(letter.detail)),
      facts(["record", el("span", {}, id(letter.topic), ` ${letter.partition} ${letter.offset}`)], ["refused", day(letter.written_at)], ["by", id(letter.worker)],
        ["at the step", id(letter.stage)], ["sent again", `${letter.replays} times`], ["key", key === null ? "none" : id(key)], ["SHA-256 of the value", id(sha256)])),
    headers.length > 0 && card("Headers", el("table", {}, el("tbody", {}, headers.map(([name, text]) =>
      el("tr", {}, el("td", {}, id(name)), el("td", { class: "id" }, text === null ? el("span", { class: "quiet" }, "null") : id(text))))))),
    card(`Value, ${count(letter.size)} bytes`,
      value ? el("pre", { id: "hex", tabindex: "0" }, hexLines(value))
        : el("p", { class: "empty" }, letter.size ? "Its bytes were not kept." : "It is empty."),
      value && value.length / 2 < letter.size && el("p", { class: "quiet" }, payload === "full" ? `nearstream dlq show ${letter.topic} ${letter.partition} ${letter.offset} --json prints all.` : "Only its beginning is shown.")),
  ].filter(Boolean);
}

/** Return lines of a place, sixteen bytes in hex, and the characters among them. */
function hexLines(hex) {
  const bytes = hex.match(/../g), lines = [];
  for (let start = 0; start < bytes.length; start += COLUMNS) {
    const row = bytes.slice(start, start + COLUMNS);
    const text = row.map((each) => parseInt(each, 16)).map((code) => (code >= 32 && code < 127 ? String.fromCharCode(code) : ".")).join("");
    lines.push(`${start.toString(16).padStart(4, "0")}  ${row.join(" ").padEnd(3 * COLUMNS - 1)}  ${text}`);
  }
  return lines.join("\n");
}
