// What words mean, where they stand: shown on hover and on focus. docs/glossary.md has all words.
import { el } from "./dom.js";

const WORDS = {
  "exact duplicate": "Its normal form equals that of an earlier document.",
  "near duplicate": "Most of its word sequences are those of an earlier document.",
  version: "Another state of one thing, such as a page that was fetched again.",
  containment: "One document lies inside the other.",
  rearranged: "The passages of an earlier document in another order.",
  overlap: "Both share passages, and neither lies inside the other.",
  unique: "No earlier document is related to it.",
  unchanged: "It was there already, with this text.",
  copies: "Exact and near duplicates of earlier documents.",
  documents: "Texts with an id, a time and a collection.",
  "new text": "Characters that none of the documents has which a verdict and its events name.",
  "time to verdict": "From the observation of a document until its verdict was sent.",
  lag: "Records that wait for the workers.",
  "dead letters": "Records that no worker could read, kept with the reason.",
  family: "A document and its copies.",
  sites: "How many sites have carried a document of the family, at most 256. Copies on one site are one source.",
  members: "How many documents have joined the family.",
  resemblance: "Common word sequences over all word sequences of both documents.",
  "edit distance": "Estimated number of characters to insert, delete or replace.",
  sketch: "A sample of the word sequences of a text, in slots. Equal slots give the resemblance.",
  bands: "Groups of slots that are keys of the index.",
  anchors: "Fingerprints of passages that are keys of the index.",
  scheme: "All numbers that shape a signature, under one name. Documents of two schemes never meet.",
  collection: "A tenant. Documents of two collections never meet.",
};

let number = 0;

/** Return a word with its meaning, which shows on hover and focus, or the word alone if it needs none. */
export function term(word, text = word) {
  const meaning = WORDS[word.toLowerCase()];
  if (!meaning) return text;
  const own = `term-${++number}`;
  return el("span", { class: "term", tabindex: "0", "aria-describedby": own }, text, el("span", { class: "tip", role: "tooltip", id: own }, meaning));
}
