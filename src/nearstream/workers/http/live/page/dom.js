// Build elements. Text from outside only ever becomes a text node or a plain attribute, never markup.

const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const SVG = "http://www.w3.org/2000/svg";

/** Return a text in which characters that are not shown, or change the order of others, are written as \uXXXX. */
export const plain = (text) =>
  String(text).replace(UNSEEN, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Return an element of HTML with attributes (`on...` are listeners) and children, where texts become text nodes. */
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** Return an element of SVG. */
export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Return an id as text that cannot change what is around it. */
export const id = (text, attributes = {}) => el("bdi", { title: plain(text), ...attributes }, plain(text));

/** Return a chip with the color and the name of a verdict. */
export const chip = (kind) => el("span", { class: `chip ${kind}` }, el("i", { class: "dot" }), el("b", {}, words(kind)));

/** Return a name of the API in words. */
export const words = (name) => String(name).replaceAll("_", " ");

/** Return the address of a view with its arguments, within this page. */
export const to = (view, ...rest) => `#/${[view, ...rest].map(encodeURIComponent).join("/")}`;

export const card = (title, ...children) =>
  el("section", { class: "card" }, title && el("div", { class: "head" }, el("h2", {}, title)), ...children);

const COUNT = new Intl.NumberFormat("en");
export const count = (number) => COUNT.format(number);

export const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)}\u00a0%`;

/** Return a time of day in UTC. */
export const clock = (time) => new Date(time).toISOString().slice(11, 19);

export const day = (time) => `${new Date(time).toISOString().slice(0, 19).replace("T", " ")}`;

/** Return seconds in the unit that fits. */
export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.9995) return `${(1000 * value).toPrecision(value < 0.0995 ? 2 : 3)} ms`.replace(/^(\d+)\.0+ /, "$1 ");
  if (value < 90) return `${value.toFixed(value < 10 ? 1 : 0)} s`;
  if (value < 5400) return `${Math.round(value / 60)} min`;
  if (value < 129600) return `${Math.round(value / 3600)} h`;
  return `${count(Math.round(value / 86400))} d`;
}

export const facts = (...rows) =>
  el("dl", { class: "facts" }, rows.filter(Boolean).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));

/** Return the collections to search: the one that is chosen, else all that were seen. */
export function searched() {
  const choice = document.getElementById("collection");
  const seen = [...choice.options].map((option) => option.value).filter(Boolean);
  return choice.value ? [choice.value] : seen.length ? seen : ["default"];
}

/** Return what each collection answers and the collections that failed with their errors. */
export async function everywhere(collections, question) {
  const settled = await Promise.allSettled(collections.map(question));
  const pairs = settled.map((each, place) => [collections[place], each]);
  return {
    found: pairs.filter(([, each]) => each.status === "fulfilled").map(([name, each]) => [name, each.value]),
    failed: pairs.filter(([, each]) => each.status === "rejected").map(([name, each]) => [name, each.reason]),
  };
}
