// Who has got a text: all members of a family in the order in which they joined, and whether they came before a label.
import { ApiError, get } from "./api.js";
import { card, count, day, el, id, to } from "./dom.js";

const PAGE = 100;
const STATE = {
  suspended: (family) => `suspended, because far more matches than before: run nearstream label confirm ${family}, or revoke`,
  confirmed: () => "confirmed: they count, whatever matches them",
};

/** Return a card that reads the members of the family of a document, page by page. It stays empty where nobody can say. */
export function whoHasGotIt(collection, member) {
  const labels = el("ul", { id: "labels" }), rows = el("tbody"), told = el("p", { class: "quiet", id: "before" });
  const more = el("button", { type: "button", id: "more-members" }, "Show more");
  const shown = card("Who has got it", el("p", { class: "quiet" }, "In the order in which they joined, with the times of observation."), labels, told, el("table", { class: "members", id: "all-members" }, rows), more);
  let after = 0, all = 0, before = 0;
  const read = async () => {
    more.disabled = true;
    try {
      const query = new URLSearchParams({ collection, after, limit: PAGE });
      const found = await get(`/v1/families/${encodeURIComponent(member)}/members?${query}`);
      const since = found.labels[0] && Date.parse(found.labels[0].since);
      labels.replaceChildren(...found.labels.map((label) => el("li", {}, label.label, ` since ${day(label.since)}, weight ${count(label.weight)}: `, id(label.id))),
        ...(found.label_state ? [el("li", {}, STATE[found.label_state](found.family))] : []));
      for (const each of found.members) {
        const isBefore = since !== undefined && Date.parse(each.observed_at) < since;
        rows.append(el("tr", {}, el("td", {}, el("time", {}, day(each.observed_at))), el("td", { class: "id" }, el("a", { href: to("document", collection, each.id) }, id(each.id))), el("td", {}, isBefore && "before the label")));
        all += 1;
        before += isBefore;
      }
      after = found.next ?? after;
      more.hidden = found.next === null;
      told.textContent = since === undefined ? `${count(all)} of ${count(found.size)} are shown. None is labelled.` : `${count(before)} of the ${count(all)} that are shown, of ${count(found.size)}, came before the first label.`;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (!all) shown.hidden = error.status === 404; // as in the demo, which has no index
      told.textContent = `They cannot be read: ${error.message}.`;
    } finally {
      more.disabled = false;
    }
  };
  more.addEventListener("click", read);
  read();
  return shown;
}
