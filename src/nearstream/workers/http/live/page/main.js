// The page: which view is shown, the stream of events, and the state of the last hour once a second.
import { follow, get } from "./api.js";
import { clock, count, el } from "./dom.js";
import { CheckView } from "./view_check.js";
import { DocumentView } from "./view_document.js";
import { FamiliesView } from "./view_families.js";
import { LetterView, LettersView } from "./view_letters.js";
import { LiveView } from "./view_live.js";
import { PairView } from "./view_pair.js";
import { WorkersView } from "./view_workers.js";

const VIEWS = {
  live: ["Live", LiveView], families: ["Families", FamiliesView], document: ["Document", DocumentView], check: ["Check", CheckView], letters: ["Dead letters", LettersView],
  workers: ["Workers", WorkersView],
  family: [null, FamiliesView, "families"], pair: [null, PairView, "document"], letter: [null, LetterView, "letters"],
};
const EVERY = 1000, WITHIN = 2500, RECENT = 60;

const main = document.getElementById("main"), tabs = document.getElementById("tabs"), link = document.getElementById("link"), trouble = document.getElementById("trouble");
const choice = document.getElementById("collection"), received = document.getElementById("received");
const shown = Object.entries(VIEWS).filter(([, [title]]) => title);
const newest = []; // events for a view that is opened
const arrived = []; // events since the last frame
let frame = null, view = null, latest = null, current = null, total = 0, missed = 0, isConnected = false, unanswered = "", reading = new AbortController();

function open() {
  const [name, ...rest] = location.hash.slice(2).split("/").map((part) => { try { return decodeURIComponent(part); } catch { return ""; } });
  const [title, Kind, above] = VIEWS[name] ?? VIEWS.live;
  view = new Kind(...rest);
  main.replaceChildren(...view.element);
  const own = above ?? (VIEWS[name] ? name : "live");
  for (const tab of tabs.children) {
    if (tab.dataset.view === own) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  document.title = `nearstream · ${title ?? name}`;
  scrollTo(0, 0);
  view.take(newest);
  if (latest) view.show(latest);
}

/** Return what is wrong: a word, and a sentence for each thing. */
function wrong() {
  if (unanswered || !isConnected) return ["no connection", [unanswered || "The server sends no events."]];
  if (!latest) return ["no events", []];
  if (!latest.connected) return ["no events", [latest.why, ...latest.troubles]];
  return latest.troubles.length ? ["standing still", latest.troubles] : null;
}

function connection() {
  const [word, sentences] = wrong() ?? ["live", ["Events arrive"]], on = !wrong();
  link.className = `link ${on ? "on" : "off"}`;
  link.lastChild.textContent = word;
  link.title = sentences.join("\n");
  trouble.hidden = on || !(latest || unanswered);
  const isStale = Boolean(latest) && (Boolean(unanswered) || !isConnected || !latest.connected);
  document.body.classList.toggle("stale", isStale);
  if (!isStale && latest) current = latest.now;
  const dated = isStale ? [current ? `The numbers below are of ${clock(current)} UTC.` : "The numbers below may be old."] : [];
  const said = trouble.hidden ? "" : [...sentences, ...dated].join("\n");
  if (trouble.textContent !== said) trouble.textContent = said;
}

async function poll() {
  try {
    if (!document.hidden || !latest) {
      latest = await get(`/v1/live?collection=${encodeURIComponent(choice.value)}`, { signal: AbortSignal.timeout(WITHIN) });
      unanswered = "";
      document.getElementById("clock").textContent = clock(latest.now);
      collections(latest.collections);
      choice.value = latest.collection;
      view.show(latest);
    }
  } catch (error) {
    unanswered = `The server does not say how the stream is: ${error.message}`;
    console.info(unanswered);
  }
  connection();
  setTimeout(poll, EVERY);
}

/** Offer the collections that were seen. */
function collections(names) {
  const known = new Set([...choice.options].map((option) => option.value));
  for (const name of names) if (!known.has(name)) choice.append(el("option", { value: name }, name));
}

function stream() {
  reading.abort();
  reading = new AbortController();
  follow(`collection=${encodeURIComponent(choice.value)}`, RECENT, {
    signal: reading.signal,
    take(events) {
      total += events.length;
      arrived.push(...events);
      arrived.splice(0, arrived.length - RECENT);
      frame ??= requestAnimationFrame(draw);
    },
    state(on) { isConnected = on; connection(); },
    missed(events) { missed += events; document.getElementById("missed").textContent = count(missed); },
  });
}

/** Show what has arrived since the last frame. */
function draw() {
  const events = arrived.splice(0);
  frame = null;
  received.textContent = count(total);
  newest.push(...events);
  newest.splice(0, newest.length - RECENT);
  view.take(events);
}

function theme(isDark) {
  document.documentElement.classList.toggle("dark", isDark);
  if (latest) view.show(latest);
}

const system = matchMedia("(prefers-color-scheme: dark)");
const kept = localStorage.getItem("theme");
document.documentElement.classList.toggle("dark", kept ? kept === "dark" : system.matches);
system.addEventListener("change", () => { if (!localStorage.getItem("theme")) theme(system.matches); });

function flip() {
  const isDark = !document.documentElement.classList.contains("dark");
  localStorage.setItem("theme", isDark ? "dark" : "light");
  theme(isDark);
}

document.getElementById("theme").addEventListener("click", flip);
choice.addEventListener("change", () => { latest = null; newest.length = arrived.length = 0; open(); stream(); });
addEventListener("hashchange", () => { open(); main.focus({ preventScroll: true }); });
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const tab = shown[Number(event.key) - 1];
  if (tab) location.hash = `#/${tab[0]}`;
  else if (event.key === "t") flip();
  else if (event.key === " " && view.toggle && event.target.tagName !== "BUTTON") { event.preventDefault(); view.toggle(); }
});

tabs.append(...shown.map(([name, [title]]) => el("a", { href: `#/${name}`, "data-view": name }, title)));
open();
connection();
stream();
poll();
