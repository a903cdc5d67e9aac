// One document: what it is to others, its family, and what each of its states has changed.
import { get } from "./api.js";
import { card, chip, count, day, el, everywhere, facts, id, percent, plain, searched, svg, to, words } from "./dom.js";
import { term } from "./glossary.js";

const WIDE = 1000, TALL = 34;

export class DocumentView {
  constructor(collection, name) {
    this.shown = el("div", { class: "lists", id: "found" });
    this.element = [el("h1", { class: "sr" }, "Document"), card("Find a document", finder(collection, name)), this.shown];
    if (name !== undefined) this.load(collection ? [collection] : searched(), name);
  }

  take() {}

  show() {}

  async load(collections, name) {
    this.shown.replaceChildren(el("p", { class: "empty" }, "Looking …"));
    const { found, failed } = await everywhere(collections, (collection) => get(`/v1/document?${new URLSearchParams({ collection, id: name })}`));
    const away = failed.filter(([, error]) => error.status !== 404);
    const where = `in ${collections.join(", ")}`;
    this.shown.replaceChildren(...found.flatMap(([, document]) => page(document)),
      ...(found.length ? [] : [card("Document", el("h1", {}, id(name)), el("p", { class: "empty" }, `There is no such document ${where}.`))]),
      ...(away.length ? [card("Not searched", ...away.map(([collection, error]) => el("p", { class: "note" }, `${collection}: ${error.message}`)))] : []));
  }
}

function finder(collection, name) {
  const where = el("input", { name: "collection", value: collection ?? "", "aria-label": "Collection", placeholder: `collection (empty: ${searched().join(", ")})` });
  const which = el("input", { name: "id", required: true, "aria-label": "Id", value: name ?? "", placeholder: "id of the document", autofocus: name === undefined });
  return el("form", { class: "form", onsubmit: (event) => { event.preventDefault(); location.hash = to("document", where.value.trim(), which.value); } }, where, which, el("button", { class: "main" }, "Show"));
}

function page({ collection, id: name, verdict, states }) {
  return [
    el("section", { class: "card", id: "document" }, el("div", { class: "head" }, el("h2", {}, "Document"), verdict && chip(verdict.verdict)), el("h1", {}, id(name)),
      verdict ? told(collection, verdict) : el("p", { class: "quiet" }, "Its verdict is no longer in the memory of the server.")),
    states.length > 0 && card(`States in ${collection}, the newest first`, el("ol", { class: "chain", id: "states" }, states.map(state))),
  ].filter(Boolean);
}

function told(collection, verdict) {
  const of = verdict.of, founder = verdict.family.founder;
  return el("div", {},
    of && of.id !== verdict.id && el("p", {}, el("span", { class: "quiet" }, "related to "), el("a", { href: to("document", collection, of.id) }, id(of.id)), " ",
      el("a", { href: to("pair", collection, verdict.id, of.id) }, "see what they share →")),
    verdict.sources?.length > 0 && el("p", {}, el("span", { class: "quiet" }, "the rest is in "), ...verdict.sources.flatMap((source, place) => [place ? ", " : "", el("a", { href: to("document", collection, source.id) }, id(source.id)), el("span", { class: "quiet" }, ` (${count(source.characters)})`)])),
    references(verdict.references),
    verdict.novel && bar(verdict),
    facts(["observed", day(verdict.observed_at)], ["characters", count(verdict.characters)], verdict.novel && [term("new text"), `${count(verdict.novel.value)} characters`], verdict.resemblance && ["resemblance", percent(verdict.resemblance.value, 1)],
      ["place in its family", el("a", { href: to("family", verdict.family.id, collection, verdict.id) }, `no. ${count(verdict.family.ordinal)}`)],
      founder && founder.id !== verdict.id && ["first of the family", el("a", { href: to("document", collection, founder.id) }, id(founder.id))],
      ["collection", collection], verdict.source && ["source", id(verdict.source)], verdict.url && ["url", id(verdict.url)],
      ...Object.entries(verdict.labels ?? {}).map(([name, value]) => [name, id(value)])));
}

/** Return what is like a document in each collection that it names as a reference. */
export const references = (found) => found?.length > 0 && el("p", { class: "references" }, el("span", { class: "quiet" }, "compared with other collections: "), ...found.flatMap((each, place) => [place ? ", " : "", words(each.relation), " of ",
  el("a", { href: to("document", each.collection, each.id) }, `${plain(each.collection)}/`, id(each.id)), el("span", { class: "quiet" }, ` (${percent(each.resemblance.value)})`)]));

/** Return the document as a bar: grey is known text, bright is new. Hovering or focusing a part says where it is from. */
function bar({ characters, novel, novel_spans: spans = [], sources = [] }) {
  const scale = WIDE / Math.max(characters, 1), label = `${count(novel.value)} of ${count(characters)} characters are new`;
  const shape = svg("svg", { class: "bars one", viewBox: `0 0 ${WIDE} ${TALL}`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  const part = (start, end, kind, text) => shape.append(svg("rect", { class: kind, x: start * scale, width: Math.max((end - start) * scale, 2), height: TALL, tabindex: 0 }, svg("title", {}, text)));
  const known = sources.map((source) => `${source.id} (${count(source.characters)})`).join(", ");
  part(0, characters, "", known ? `known from ${known}` : "known");
  for (const [start, end] of spans) part(start, end, "span", `new: ${count(start)} to ${count(end)}`);
  return el("div", { id: "new-text" }, shape, el("p", { class: "quiet" }, label));
}

function state({ version, observed_at, characters, change }) {
  return el("li", { class: change?.relation ?? "" }, el("strong", { class: "number" }, day(observed_at)), el("span", { class: "quiet number" }, `  ${count(characters)} characters, version ${version}`),
    el("div", {}, change ? [chip(change.relation), el("span", { class: "quiet" }, `  ${percent(change.resemblance)} alike `),
      el("span", { class: "plus number" }, ` +${count(change.added)}`), el("span", { class: "minus number" }, ` −${count(change.removed)}`)]
      : el("span", { class: "quiet" }, "the oldest state that is stored")));
}
