// Paste a text: is it bulk, a copy of a known document, or new? The text is not stored.
import { get } from "./api.js";
import { card, chip, count, el, facts, id, percent, to, usual, words } from "./dom.js";

export class CheckView {
  constructor() {
    this.text = el("textarea", { "aria-label": "Text", placeholder: "Paste a text. It is compared with the index, and not kept.", required: true });
    this.collection = el("input", { "aria-label": "Collection", value: usual() });
    this.answer = el("div", { id: "answer", "aria-live": "polite" });
    this.element = [el("h1", { class: "sr" }, "Check a text"), card("Is this text known?",
      el("form", { onsubmit: (event) => { event.preventDefault(); this.ask(); } }, this.text,
        el("div", { class: "form" }, el("label", { class: "quiet" }, "in the collection"), this.collection, el("button", { class: "main" }, "Check")))), this.answer];
  }

  take() {}

  show() {}

  async ask() {
    const headers = { "Content-Type": "text/plain; charset=utf-8", "nearstream-collection": this.collection.value };
    try {
      this.answer.replaceChildren(result(await get("/v1/check", { method: "POST", headers, body: this.text.value }), this.collection.value));
    } catch (error) {
      this.answer.replaceChildren(card("Answer", el("p", { class: "note" }, `The text was not checked: ${error.message}.`)));
    }
  }
}

function result(answer, collection) {
  const why = answer.degraded ? `no answer: ${words(answer.reason)}` : answer.low_confidence.map(words).join(", ");
  return el("section", { class: "card" }, el("div", { class: "head" }, el("h2", {}, "Answer"), chip(answer.verdict), answer.relation && chip(answer.relation), el("span", { class: "quiet" }, why)),
    el("h1", {}, answer.match ? el("a", { href: to("document", collection, answer.match.id) }, id(answer.match.id)) : "Nothing like it is known"),
    answer.match && facts(["resemblance", `${percent(answer.resemblance, 1)} (${percent(answer.low)}–${percent(answer.high)})`],
      answer.distance !== null && ["edit distance", count(answer.distance)], ["family", answer.family ? el("a", { href: to("family", answer.family) }, `${count(answer.size)} members`) : "none"],
      ["joined in an hour", count(answer.count_1h)], ["in a day", count(answer.count_24h)], ["in a week", count(answer.count_7d)]));
}
