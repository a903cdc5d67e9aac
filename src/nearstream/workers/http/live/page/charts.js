// Draw charts: the stacked verdicts of an hour on a canvas, sparklines in SVG.
import { clock, count, el, svg, words } from "./dom.js";

export const KINDS = ["unique", "unchanged", "version", "containment", "rearranged", "overlap", "near_duplicate", "exact_duplicate"];

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Return a line of numbers with the area below it. */
export function spark(numbers, label) {
  const top = Math.max(...numbers, 1), step = 100 / (numbers.length - 1);
  const points = numbers.map((number, place) => `${(place * step).toFixed(2)} ${(30 - (28 * number) / top).toFixed(2)}`);
  return svg("svg", { class: "spark", viewBox: "0 0 100 32", preserveAspectRatio: "none", role: "img", "aria-label": label },
    svg("path", { class: "area", d: `M0 31L${points.join("L")}L100 31Z` }), svg("path", { d: `M${points.join("L")}` }));
}

/** A chart of columns, stacked by kind. `draw` takes the numbers of each kind, `end` is the time of the last column. */
export class Stack {
  constructor(height, label) {
    this.canvas = el("canvas", { role: "img", "aria-label": label });
    this.hint = el("div", { class: "hint", hidden: true });
    this.element = el("div", { class: "chart" }, this.canvas, this.hint);
    this.height = height;
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => { this.hint.hidden = true; this.at = null; this.paint(); });
    new ResizeObserver(() => this.paint()).observe(this.element);
  }

  draw(series, end, slotSeconds) {
    this.kinds = KINDS.filter((kind) => series[kind]);
    Object.assign(this, { series, end, slotSeconds });
    this.length = series[this.kinds[0]].length;
    this.sums = Array.from({ length: this.length }, (_, place) => this.kinds.reduce((sum, kind) => sum + series[kind][place], 0));
    this.paint();
  }

  paint() {
    if (!this.series || !this.canvas.isConnected) return;
    const width = this.element.clientWidth, height = this.height, ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext("2d"), foot = 20, room = height - foot - 8;
    pen.scale(ratio, ratio);
    const top = niceTop(Math.max(...this.sums, 1));
    pen.font = "11px system-ui, sans-serif";
    pen.lineWidth = 1;
    for (const share of [0, 0.5, 1]) {
      const y = Math.round(8 + room * (1 - share)) + 0.5;
      pen.strokeStyle = color("line");
      pen.beginPath(); pen.moveTo(0, y); pen.lineTo(width, y); pen.stroke();
    }
    const wide = width / this.length;
    for (let place = 0; place < this.length; place++) {
      let y = 8 + room;
      for (const kind of this.kinds) {
        const tall = (room * this.series[kind][place]) / top;
        if (!tall) continue;
        pen.fillStyle = this.at === null || this.at === undefined || this.at === place ? color(kind) : `color-mix(in srgb, ${color(kind)} 55%, ${color("card")})`;
        y -= tall;
        pen.fillRect(place * wide, y, Math.max(wide - (wide > 3 ? 1 : 0.2), 0.6), tall);
      }
    }
    pen.fillStyle = color("soft");
    for (const share of [0.5, 1]) pen.fillText(`${count(Math.round((10 * top * share) / this.slotSeconds) / 10)}/s`, 2, 8 + room * (1 - share) + 12);
    pen.textAlign = "center";
    const minutes = (this.length * this.slotSeconds) / 60, every = width < 520 ? 20 : 10;
    for (let back = every; back < minutes; back += every) {
      pen.fillText(clock(this.end - back * 60000).slice(0, 5), width * (1 - back / minutes), height - 4);
    }
    pen.textAlign = "right";
    pen.fillText("now", width, height - 4);
  }

  point(event) {
    if (!this.series) return;
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left;
    this.at = Math.min(Math.max(Math.floor((x / box.width) * this.length), 0), this.length - 1);
    const begin = this.end - (this.length - this.at) * this.slotSeconds * 1000;
    const rows = this.kinds.filter((kind) => this.series[kind][this.at]).reverse();
    this.hint.replaceChildren(el("div", { class: "quiet" }, `${clock(begin)}, ${this.slotSeconds} s`),
      ...rows.map((kind) => el("div", { class: kind }, el("i", { class: "dot" }), ` ${words(kind)} ${count(this.series[kind][this.at])}`)));
    this.hint.hidden = false;
    const left = x > box.width / 2 ? x - this.hint.offsetWidth - 14 : x + 14;
    this.hint.style.left = `${left}px`;
    this.hint.style.top = "12px";
    this.paint();
  }
}

function niceTop(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  return power * ([1, 2, 3, 4, 5, 8, 10].find((step) => step * power >= most) ?? 10);
}
