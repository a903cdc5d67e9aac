// Paste a text: is it bulk, a copy of a known document, or new? The text is not stored.
import { get } from "./api.js";
import { card, chip, count, el, everywhere, facts, id, percent, searched, to, words } from "./dom.js";
import { term } from "./glossary.js";
import { references } from "./view_document.js";

const RANKS = ["bulk", "exact_duplicate", "near_duplicate", "version", "containment", "rearranged", "overlap"];

export class CheckView {
  constructor() {
    this.text = el("textarea", { "aria-label": "Text", placeholder: "Paste a text. It is compared with the index, and not kept.", required: true });
    this.collection = el("input", { "aria-label": "Collection", placeholder: `all: ${searched().join(", ")}` });
    this.answer = el("div", { id: "answer", class: "lists", "aria-live": "polite" });
    this.element = [el("h1", { class: "sr" }, "Check a text"), card("Is this text known?",
      el("form", { onsubmit: (event) => { event.preventDefault(); this.ask(); } }, this.text,
        el("div", { class: "form" }, el("label", { class: "quiet" }, "in the ", term("collection")), this.collection, el("button", { class: "main" }, "Check")))), this.answer];
  }

  take() {}

  show() {}

  async ask() {
    const collections = this.collection.value.trim() ? [this.collection.value.trim()] : searched();
    const { found, failed } = await everywhere(collections, (collection) =>
      get("/v1/check", { method: "POST", headers: { "Content-Type": "text/plain; charset=utf-8", "nearstream-collection": collection }, body: this.text.value }));
    const known = found.filter(([, answer]) => answer.match).sort((one, other) => rank(one[1]) - rank(other[1]));
    const unknown = found.filter(([, answer]) => !answer.match && !answer.degraded).map(([name]) => name);
    const degraded = found.filter(([, answer]) => answer.degraded).map(([name, answer]) => [name, `no answer: ${words(answer.reason)}`]);
    const away = [...degraded, ...failed.map(([name, error]) => [name, error.message])];
    this.answer.replaceChildren(...known.map(([name, answer]) => result(answer, name)),
      ...(known.length || !unknown.length ? [] : [card("Answer", el("h1", {}, "Nothing like it is known"))]),
      ...(unknown.length ? [el("p", { class: "quiet" }, `New in ${unknown.join(", ")}.`)] : []),
      ...found.map(([, answer]) => references(answer.references)).filter(Boolean).slice(0, 1),
      ...(away.length ? [card("Not checked", ...away.map(([name, why]) => el("p", { class: "note" }, `${name}: ${why}`)))] : []));
  }
}

const rank = ({ verdict, relation }) => (verdict === "bulk" ? 0 : 1 + RANKS.indexOf(relation ?? verdict));

function result(answer, collection) {
  const why = answer.low_confidence.map(words).join(", ");
  return el("section", { class: "card" }, el("div", { class: "head" }, el("h2", {}, `Answer in ${collection}`), chip(answer.verdict), answer.relation && chip(answer.relation), el("span", { class: "quiet" }, why)),
    el("h1", {}, el("a", { href: to("document", collection, answer.match.id) }, id(answer.match.id))),
    facts([term("resemblance"), `${percent(answer.resemblance, 1)} (${percent(answer.low)}–${percent(answer.high)})`],
      answer.distance !== null && [term("edit distance"), count(answer.distance)], ["family", answer.family ? el("a", { href: to("family", answer.family, collection, answer.match.id) }, `${count(answer.size)} members`) : "none"],
      answer.family && [term("sites"), count(answer.sites)],
      ["joined in an hour", count(answer.count_1h)], ["in a day", count(answer.count_24h)], ["in a week", count(answer.count_7d)]));
}
