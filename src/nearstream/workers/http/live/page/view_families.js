// Which documents are copied most, which grow fastest, and for one family: since when, and where its members come from.
import { ApiError, get } from "./api.js";
import { spark } from "./charts.js";
import { card, chip, clock, count, day, el, facts, id, percent, to, words } from "./dom.js";
import { term } from "./glossary.js";
import { familyRow } from "./view_live.js";
import { whoHasGotIt } from "./who.js";

export class FamiliesView {
  constructor(own, collection, member) {
    this.own = own ?? null;
    this.member = member === undefined ? "" : `?${new URLSearchParams({ collection, id: member })}`;
    this.growing = el("ul", { class: "rows" });
    this.largest = el("ul", { class: "rows", id: "largest" });
    this.detail = el("div", { id: "family" });
    this.who = el("div");
    const lists = el("div", { class: "lists" }, card("Fastest growing", this.growing), card("Largest", this.largest));
    this.element = [el("h1", { class: this.own ? "sr" : "" }, "Families of copies"),
      el("div", { class: "columns" }, this.own ? [el("div", { class: "lists" }, this.detail, this.who), lists] : [card("Fastest growing, in the last ten minutes", this.growing), card("Largest", this.largest)])];
  }

  take() {}

  show(state) {
    for (const [list, families] of [[this.growing, state.growing], [this.largest, state.largest]]) {
      list.replaceChildren(...families.map((family) => familyRow(family, this.own)));
      if (!families.length) list.append(el("li", { class: "empty" }, "None yet."));
    }
    if (this.own) this.ask();
  }

  async ask() {
    if (this.asked) return;
    this.asked = true;
    try {
      const found = await get(`/v1/families/${encodeURIComponent(this.own)}${this.member}`);
      const text = JSON.stringify(found);
      if (text !== this.shown) this.detail.replaceChildren(...detail(found));
      this.shown = text;
      const known = found.family.founder ?? found.members[0]?.id;
      if (!this.who.firstChild && known !== undefined) this.who.append(whoHasGotIt(found.family.collection, known));
    } catch (error) {
      if (!(error instanceof ApiError)) return;
      this.detail.replaceChildren(card("Family", el("p", { class: "empty" }, error.status === 404 ? "Neither the verdicts of the last hour nor the index has this family: its documents were removed, or have expired." : `It cannot be shown: ${error.message}.`)));
    } finally {
      this.asked = false;
    }
  }
}

function detail({ family, marks, verdicts, members, source }) {
  const isStored = source === "index";
  const top = Math.max(...marks.map((mark) => mark.count), 1);
  const joined = isStored ? 0 : Object.values(verdicts).reduce((sum, number) => sum + number, 0);
  const name = family.founder === null ? "a document that is gone" : el("a", { href: to("document", family.collection, family.founder) }, id(family.founder));
  return [
    el("section", { class: `card${family.is_storm ? " is-storm" : ""}` },
      el("div", { class: "head" }, el("h2", {}, "Copies of"), isStored && el("span", { class: "quiet", id: "stored" }, "from the index, because no document has joined it within the last hour; times are those of observation"), family.is_storm && el("span", { class: "note" }, "storm")),
      el("h1", {}, name),
      facts([term("members"), count(family.size)], [term("sites"), count(family.sites)], ["in ten minutes", `+${count(family.joined_10m)}`], ["in an hour", `+${count(family.joined_1h)}`], ["first observed", day(family.first_seen)], ["last joined", clock(family.last_joined)], ["collection", family.collection]),
      big(family)),
    card("Where they come from",
      el("ul", { class: "marks", id: "marks" }, marks.slice(0, 12).map((mark) => {
        const fill = el("i");
        fill.style.width = `${(100 * mark.count) / top}%`;
        return el("li", {}, el("span", { class: "quiet" }, mark.name), el("span", { class: "bar" }, fill, id(mark.value)), el("span", { class: "number" }, joined ? percent(mark.count / joined) : count(mark.count)));
      })),
      !marks.length && el("p", { class: "empty" }, "Its members name no source, no URL and no labels."),
      el("div", { class: "legend" }, Object.entries(verdicts).map(([kind, number]) => el("span", { class: kind }, el("i", { class: "dot" }), term(words(kind)), el("b", {}, count(number)))))),
    card("Newest members", el("table", { class: "members", id: "members" }, el("tbody", {}, members.slice(0, 20).map((member) => el("tr", {},
      el("td", {}, el("time", {}, clock(member.joined_at))), el("td", {}, member.verdict && chip(member.verdict)),
      el("td", { class: "id" }, el("a", { href: to("document", family.collection, member.id) }, id(member.id))),
      el("td", { class: "n" }, member.resemblance === null ? "" : percent(member.resemblance)),
      el("td", {}, family.founder !== null && el("a", { href: to("pair", family.collection, member.id, family.founder) }, "compare"))))))),
  ];
}

function big(family) {
  const line = spark(family.minutes, "Copies in each minute of the last hour");
  line.classList.add("big");
  return line;
}
