// What happens now: the rate, the families that grow, and each verdict as it arrives.
import { get } from "./api.js";
import { KINDS, Stack, spark } from "./charts.js";
import { card, chip, clock, count, el, id, percent, plain, seconds, to, words } from "./dom.js";
import { term } from "./glossary.js";

const ROWS = 16, ALERTS = 4;
const CALM = 2; // rows at a time of which each is worth a glance

/** Return the row of a family, which leads to it. */
export function familyRow(family, current) {
  const name = family.founder === null ? el("span", { class: "quiet" }, "the first one is gone") : id(family.founder);
  return el("li", {}, el("a", {
    class: `family${family.is_storm ? " is-storm" : ""}`, href: to("family", family.id), "aria-current": family.id === current && "true",
  },
    el("span", { class: "name" }, name, el("small", {}, family.collection)),
    spark(family.minutes, "Copies in each minute of the last hour"),
    el("span", { class: family.joined_10m ? "n up" : "n quiet" }, family.joined_10m ? `+${count(family.joined_10m)}` : "–", el("small", { class: "quiet" }, "10 min")),
    el("span", { class: "n" }, count(family.size), el("small", { class: "quiet" }, family.sites > 1 ? `on ${count(family.sites)} sites` : "members"))));
}

const tile = (title) => {
  const value = el("strong", {}, "–"), note = el("span", {}, "");
  return { element: el("section", { class: "card tile" }, el("h2", {}, term(title)), value, note), value, note };
};

export class LiveView {
  constructor() {
    this.tiles = { rate: tile("Documents"), copies: tile("Copies"), fresh: tile("New text"), age: tile("Time to verdict"), lag: tile("Lag"), refused: tile("Dead letters") };
    this.alarms = el("div", { class: "alarms", id: "alarms" });
    this.stack = new Stack(230, "Verdicts of the last hour by kind");
    this.legend = el("div", { class: "legend" });
    this.loading = el("span", { class: "quiet", id: "loading", role: "status" });
    this.families = el("ul", { class: "rows", id: "growing" });
    this.ticker = el("ol", { class: "ticker", id: "ticker", "aria-label": "Verdicts as they arrive, the newest first" });
    this.hold = el("button", { type: "button", class: "right", "aria-pressed": "false", onclick: () => this.toggle() }, "Hold");
    this.waiting = [];
    this.isHeld = false;
    this.element = [
      el("h1", { class: "sr" }, "Live"),
      this.alarms,
      el("div", { class: "tiles" }, Object.values(this.tiles).map((each) => each.element)),
      el("section", { class: "card" }, el("div", { class: "head" }, el("h2", {}, "Verdicts of the last hour"), this.loading), this.stack.element, this.legend),
      el("div", { class: "columns" },
        card("Families that grow now", this.families),
        el("section", { class: "card" }, el("div", { class: "head" }, el("h2", {}, "Verdicts as they arrive"), this.hold), this.ticker)),
    ];
  }

  toggle() {
    this.isHeld = !this.isHeld;
    this.hold.setAttribute("aria-pressed", String(this.isHeld));
    this.hold.textContent = this.isHeld ? "Go on" : "Hold";
    this.take([]);
  }

  take(events) {
    this.waiting.push(...events.filter((event) => event.type === "verdict" || event.type === "retraction"));
    this.waiting.splice(0, this.waiting.length - ROWS);
    if (!this.waiting.length || this.isHeld) return;
    const isCalm = this.waiting.length <= CALM;
    this.ticker.prepend(...this.waiting.splice(0).reverse().map((event) => tickerRow(event, isCalm)));
    while (this.ticker.children.length > ROWS) this.ticker.lastChild.remove();
  }

  show(state) {
    const totals = Object.fromEntries(KINDS.map((kind) => [kind, state.verdicts[kind].reduce((sum, number) => sum + number, 0)]));
    const all = Object.values(totals).reduce((sum, number) => sum + number, 0);
    const copies = totals.exact_duplicate + totals.near_duplicate;
    const { rate, copies: share, age, lag, refused } = this.tiles;
    rate.value.replaceChildren(state.per_second >= 100 ? count(Math.round(state.per_second)) : state.per_second.toFixed(1), el("small", {}, " /s"));
    rate.note.textContent = `${count(all)} verdicts in the last hour`;
    share.value.textContent = all ? percent(copies / all, 1) : "–";
    share.note.textContent = `${count(copies)} equal or nearly equal, of the last hour`;
    this.showNew(state.new_text);
    age.value.textContent = seconds(state.age_p50);
    age.note.textContent = state.age_p50 === null ? "no verdict in the last minute" : `median since observed, 99 % within ${seconds(state.age_p99)}`;
    lag.value.textContent = state.lag ? count(state.lag.records) : "–";
    lag.note.textContent = state.lag ? (state.lag.records ? `records, the oldest for ${seconds(state.lag.seconds)}` : "the workers are up to date") : state.source === "kafka" ? "not known" : "one process, nothing waits";
    refused.element.hidden = state.dead_letters_1h === null;
    refused.value.textContent = count(state.dead_letters_1h ?? 0);
    refused.note.replaceChildren(state.dead_letters_1h ? el("a", { href: to("letters") }, "refused in the last hour") : "every record of the last hour was read");
    this.loading.textContent = state.loading === null ? "" : `reading what was sent before the start: ${percent(state.loading)}`;
    const slot = 1000 * state.slot_seconds;
    this.stack.draw(state.verdicts, (Math.floor(Date.parse(state.now) / slot) + 1) * slot, state.slot_seconds);
    this.legend.replaceChildren(...KINDS.filter((kind) => totals[kind]).reverse().map((kind) =>
      el("span", { class: kind }, el("i", { class: "dot" }), term(words(kind)), el("b", {}, count(totals[kind])))));
    this.families.replaceChildren(...state.growing.map((family) => familyRow(family)));
    if (!state.growing.length) this.families.append(el("li", { class: "empty" }, "No family has grown in the last ten minutes."));
    this.alarm(state);
  }

  /** Show which share of the text of the last hour was new, in all and in the largest collections. */
  showNew(texts) {
    const { value, note } = this.tiles.fresh, sum = (field) => texts.reduce((total, each) => total + each[field], 0);
    const share = ({ novel, characters }) => percent(novel / characters);
    value.textContent = texts.length ? percent(sum("novel") / sum("characters"), 1) : "–";
    note.textContent = texts.length > 1 ? texts.slice(0, 3).map((each) => `${each.collection} ${share(each)}`).join(", ") : texts.length ? "of the characters of the last hour" : "no verdict says it";
  }

  /** Return an alert with what a person can say about it. */
  alarmRow(alert, family, silence) {
    const button = (text, hours) => el("button", { type: "button", onclick: (event) => this.silence(event.target, alert, hours) }, text);
    const until = silence && el("span", { class: "quiet" }, silence.until ? `silent until ${clock(silence.until)}` : "seen");
    return el("div", { class: `alarm${silence ? " silent" : ""}` }, alarmCard(alert, family),
      el("div", { class: "actions" }, silence ? [until, button("Take back", 0)] : [button("Seen", null), button("Silent for 4 h", 4)]));
  }

  async silence(button, { collection, name, subject }, hours) {
    button.disabled = true;
    try {
      const headers = { "Content-Type": "application/json" };
      this.alarm(await get("/v1/silences", { method: "POST", headers, body: JSON.stringify({ collection, name, subject, hours }) }));
    } catch (error) {
      button.replaceWith(el("span", { class: "note", role: "alert" }, `That was not said: ${error.message}.`));
    }
  }

  /** Show the alerts that have not ended, or that nobody looks for storms. */
  alarm({ alerts, silences, is_alerting, alarmed }) {
    const said = new Map(silences.map((silence) => [subjectOf(silence), silence]));
    const families = new Map(alarmed.map((family) => [family.id, family]));
    const loudFirst = [...alerts].sort((one, other) => said.has(subjectOf(one)) - said.has(subjectOf(other)));
    const shown = loudFirst.slice(0, ALERTS).map((alert) => [alert, families.get(alert.subject), said.get(subjectOf(alert))]);
    const text = JSON.stringify([is_alerting, alerts.length, shown]);
    if (text === this.alarmed) return;
    this.alarmed = text;
    this.alarms.replaceChildren(...shown.map((each) => this.alarmRow(...each)),
      ...(alerts.length > ALERTS ? [el("p", { class: "quiet" }, `and ${count(alerts.length - ALERTS)} more alerts`)] : []),
      ...(is_alerting === false ? [el("p", { class: "quiet", id: "unwatched" }, "Nobody is alerted of storms, because no ", el("code", {}, "nearstream worker alert"), " has run.")] : []));
  }
}

const subjectOf = ({ collection, name, subject }) => JSON.stringify([collection, name, subject]);

function alarmCard(alert, family) {
  const isLetters = alert.name === "dead_letters", founder = family?.founder ?? alert.founder;
  const name = isLetters ? id(words(alert.subject)) : founder ? id(founder) : "a document that is gone";
  const told = {
    duplicate_storm: [stormed(alert, family), " of "],
    new_family_on_sites: [`${count(alert.value)} sites carry a new text`, ", first "],
    new_family_of_size: [`${count(family?.size ?? alert.value)} copies of a new text`, ", first "],
    label_flood: [`Label suspended, ${count(alert.value)} match it`, ": "],
    dead_letters: [`More than ${count(alert.limit)} records refused in ${minutes(alert)}`, ": "],
  }[alert.name];
  return el("a", { class: "card storm is-storm", id: alert.name === "duplicate_storm" && "storm", href: isLetters ? to("letters", alert.subject) : to("family", alert.subject, ...(alert.founder ? [alert.collection, alert.founder] : [])) }, el("i"),
    el("span", {}, el("b", {}, told[0]), told[1], name, el("small", { class: "quiet" }, ` since ${clock(alert.since)}${alert.origins?.length ? `, from ${alert.origins.map(plain).join(", ")}` : ""}`)),
    family && spark(family.minutes, "Copies in each minute of the last hour"),
    el("span", { class: "go" }, isLetters ? "See the records →" : "See where they come from →"));
}

/** Return how many copies a storm has now, or had at its begin if only the alert is known. */
function stormed(alert, family) {
  if (family && alert.window_seconds === 600) return `${count(family.joined_10m)} copies in ten minutes`;
  return `${count(alert.value)} copies in ${minutes(alert)} when it began`;
}

const minutes = ({ window_seconds: seconds }) => (seconds === 600 ? "ten minutes" : seconds % 60 ? `${count(seconds)} s` : `${count(seconds / 60)} min`);

function tickerRow(event, isCalm) {
  const fresh = isCalm ? "new " : "";
  const time = el("time", {}, clock(event.detected_at));
  if (event.type === "retraction") {
    return el("li", { class: `${fresh}retraction` }, time, chip("retraction"), el("span", { class: "what" }, id(event.document_id), el("span", { class: "quiet" }, "was removed")), el("span"));
  }
  const of = event.of && event.verdict !== "unchanged" ? [el("span", { class: "quiet" }, joins[event.verdict] ?? "and"), el("a", { href: to("pair", event.collection, event.id, event.of.id) }, id(event.of.id))] : [];
  const numbers = [event.resemblance && percent(event.resemblance.value), event.family.ordinal > 1 && `no. ${count(event.family.ordinal)}`];
  return el("li", { class: `${fresh}${event.verdict}` }, time, chip(event.verdict),
    el("span", { class: "what" }, el("a", { href: to("document", event.collection, event.id) }, id(event.id)), ...of),
    el("span", { class: "num" }, numbers.filter(Boolean).join("  ·  ")));
}

const joins = { exact_duplicate: "equals", near_duplicate: "is like", version: "updates", containment: "shares with", rearranged: "rearranges", overlap: "overlaps" };
