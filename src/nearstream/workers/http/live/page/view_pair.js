// Two documents without their texts: where they agree, in which order, and which rule decided.
import { get } from "./api.js";
import { card, chip, count, day, el, facts, id, percent, svg, to, words } from "./dom.js";
import { term } from "./glossary.js";

const WIDE = 1000, TALL = 34, GAP = 120;

export class PairView {
  constructor(collection, newer, older) {
    this.names = { collection, newer, older };
    this.element = [el("p", { class: "empty" }, "Comparing …")];
    this.load();
  }

  take() {}

  show() {}

  async load() {
    let shown;
    try {
      shown = picture(await get(`/v1/pair?${new URLSearchParams(this.names)}`));
    } catch (error) {
      shown = [card("Pair", el("h1", {}, id(this.names.newer ?? "")), el("p", { class: "empty" }, `These documents cannot be compared: ${error.message}.`))];
    }
    document.getElementById("main").contains(this.element[0]) && document.getElementById("main").replaceChildren(...shown);
    this.element = shown;
  }
}

const side = (name, ref, collection) => el("div", {}, el("span", { class: "quiet" }, `${name}: `),
  el("a", { href: to("document", collection, ref.id) }, id(ref.id)), el("span", { class: "quiet number" }, `  ${day(ref.observed_at)}, ${count(ref.characters)} characters`));

function picture(pair) {
  const decided = pair.rules.find((rule) => rule.holds);
  return [
    el("section", { class: "card", id: "pair" },
      el("div", { class: "head" }, el("h1", {}, chip(pair.relation)), el("span", { class: "quiet" }, `by the rule “${words(pair.rule)}”`),
        pair.same_lineage && el("span", { class: "quiet" }, "states of one thing")),
      side("newer", pair.newer, pair.collection), side("older", pair.older, pair.collection),
      facts([term("resemblance"), percent(pair.resemblance.value, 1)],
        ["of the newer in the older", percent(pair.containment.newer_in_older, 1)],
        ["of the older in the newer", percent(pair.containment.older_in_newer, 1)],
        [term("edit distance"), `${count(pair.distance.value)} (${count(pair.distance.low)}–${count(pair.distance.high)})`],
        ["characters", el("span", {}, el("span", { class: "plus" }, `+${count(pair.added)}`), " ", el("span", { class: "minus" }, `−${count(pair.removed)}`))]),
      pair.low_confidence.length > 0 && el("p", { class: "quiet" }, `The numbers are weak: ${pair.low_confidence.map(words).join(", ")}.`)),
    card("Common passages", bars(pair), el("p", { class: "quiet" }, order(pair.spans))),
    el("div", { class: "columns" },
      el("div", { class: "lists" },
        card("Resemblance", scale(pair.resemblance, decided?.clauses.flat().find((each) => each.number === "mean_resemblance")?.bound), el("p", { class: "quiet" }, `95 % interval ${percent(pair.resemblance.low)} to ${percent(pair.resemblance.high)}`)),
        pair.keys && card("Shared keys", facts([term("bands"), `${pair.keys.bands} of ${pair.keys.bands_of}`], [term("anchors"), `${count(pair.keys.anchors)} of ${count(pair.keys.anchors_newer)} and ${count(pair.keys.anchors_older)}`]))),
      card("Rules, in the order in which they are tried", el("table", { id: "rules" }, el("tbody", {}, rules(pair.rules, decided))))),
  ];
}

/** Return both documents as bars, and each common passage as a band between them. */
function bars({ newer, older, spans }) {
  const scale = WIDE / Math.max(newer.characters, older.characters, 1), low = TALL + GAP;
  const shape = svg("svg", { class: "bars", viewBox: `0 0 ${WIDE} ${2 * TALL + GAP}`, preserveAspectRatio: "none", role: "img", "aria-label": `${spans.length} common passages` });
  shape.append(svg("rect", { width: newer.characters * scale, height: TALL }), svg("rect", { y: low, width: older.characters * scale, height: TALL }));
  for (const span of spans) {
    const [a, b] = span.newer.map((at) => at * scale), [c, d] = span.older.map((at) => at * scale), kind = span.moved ? "crossing" : "";
    shape.append(svg("path", { class: kind, d: `M${a} ${TALL}L${b} ${TALL}C${b} ${TALL + GAP / 2} ${d} ${TALL + GAP / 2} ${d} ${low}L${c} ${low}C${c} ${TALL + GAP / 2} ${a} ${TALL + GAP / 2} ${a} ${TALL}Z` }),
      svg("rect", { class: `span ${kind}`, x: a, width: Math.max(b - a, 1), height: TALL }), svg("rect", { class: `span ${kind}`, x: c, y: low, width: Math.max(d - c, 1), height: TALL }));
  }
  return el("div", {}, el("span", { class: "quiet" }, "newer"), shape, el("span", { class: "quiet" }, "older"));
}

function order(spans) {
  if (!spans.length) return "No common passage is known.";
  const moved = spans.filter((span) => span.moved).length, all = `${spans.length} common passage${spans.length > 1 ? "s" : ""}`;
  return moved ? `${all}, ${moved} of them in another order.` : `${all}, in the same order.`;
}

function scale({ value, low, high }, bound) {
  const range = el("i"), mark = el("b"), limit = bound !== undefined && el("u", { title: `bound ${bound}` });
  range.style.left = `${100 * low}%`;
  range.style.width = `${100 * (high - low)}%`;
  mark.style.left = `${100 * value}%`;
  if (limit) limit.style.left = `${100 * bound}%`;
  return el("div", { class: "scale" }, range, limit, mark);
}

/** Return the rules up to the one that decides, each with its numbers against their bounds. */
function rules(all, decided) {
  return all.slice(0, decided ? all.indexOf(decided) + 1 : all.length).map((rule) => el("tr", { class: rule === decided ? "decided" : "" },
    el("td", {}, rule === decided ? "✓" : "–"), el("td", {}, words(rule.name), el("br"), chip(rule.relation)),
    el("td", { class: "wrap" }, rule.clauses.map((clause) => el("div", {}, clause.map((each, place) => [place > 0 && el("span", { class: "quiet" }, " or "),
      el("span", { class: each.holds ? "plus" : "minus" }, `${words(each.number)} ${each.value} ${each.sign} ${each.bound}`)]).flat())))));
}
