// A sentence of the API in pieces: plain text, commands, instants, and the nouns that become links.

import { ofRef } from "./paths";

export interface Noun {
  text: string;
  kind: string;
  name: string;
  /** The partition of a dataset that the sentence is about: `2013/1/4`. */
  at?: string;
}

/** Nouns of a sentence about work of one partition: its datasets open at that partition. */
export function ofPartition<N extends Noun>(nouns: readonly N[], at: string): Noun[] {
  return nouns.map((noun) => (noun.kind === "dataset" && at ? { ...noun, at } : noun));
}

export type Piece =
  | { kind: "text"; text: string }
  | { kind: "command"; text: string }
  | { kind: "instant"; text: string }
  | { kind: "link"; text: string; to: string; search: Record<string, string> };

/** The reason of a job that waits for approval, in few words: `waits for approval by user/ada`. Other reasons stay. */
export function inShort(reason: string): string {
  return reason.replace(/^approved by (.+), else \w+: waits for approval$/, "waits for approval by $1");
}

/** What started a run, in a list of runs: `1 partition of a.b came at ...`, without the words that each of them has. */
export function causeInShort(cause: string): string {
  return cause.replace(/^trigger met: /, "");
}

/** What started a run, after the word "started": `because it was due`, `by run now`, `by backfill d8a3eb678910e85e`. */
export function startInWords(cause: string): string {
  if (cause === "due") return "because it was due";
  if (cause.startsWith("trigger met: ")) return `because ${causeInShort(cause)}`;
  return cause.startsWith("element ") ? `for ${cause}` : `by ${cause}`;
}

/** A reason of a node of a DAG. A node without others before it waits for the begin of its run, which the API tells as an
 * end of the DAG's start: `trigger met: demo.a.nightly reached COMPLETED at ...`. */
export function withBeginning(reason: string, dag: string): string {
  return reason.replace(`${dag} reached COMPLETED at`, "the run began at");
}

/** Ids of runs in a text, in short: `a.b.c.mwz19wji.22f7ed3f514a94d965cf` is `a.b.c 22f7ed3f`. */
export function withShortIds(text: string): string {
  return text.replace(/\.[0-9a-z]{8}\.([0-9a-f]{8})[0-9a-f]{12}(?![\w-])/g, " $1");
}

/** What a job waited for before its run: ` for a slot of pool a.b`, or `: the schedule has been paused`. */
export function waitInWords(reason: string): string {
  const short = inShort(reason);
  return short.startsWith("waits for ") ? short.slice("waits".length) : `: ${short}`;
}

const INSTANT = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})/g;

/** A text with its instants as `write` has them. */
export function withInstants(text: string, write: (at: number) => string): string {
  return text.replace(INSTANT, (at) => write(Date.parse(at)));
}

/** What to run next: `run it again: sluice runs rerun ID`. */
const COMMAND = /(?<=: )sluice [a-z-]+ [^();]+/g;

/** Split a sentence by its commands, which stay as they are, by the nouns, the longest first, and by its instants. What
 * is left is plain text. */
export function pieces(sentence: string, nouns: readonly Noun[] = []): Piece[] {
  let found = by(COMMAND, "command", sentence);
  for (const noun of [...nouns].sort((a, b) => b.text.length - a.text.length)) {
    const view = ofRef(noun.kind, noun.name);
    const target = view && noun.at ? { ...view, search: { ...view.search, at: noun.at } } : view;
    if (target && noun.text)
      found = found.flatMap((piece) => (piece.kind === "text" ? byNoun(piece.text, noun.text, target) : [piece]));
  }
  return found
    .flatMap((piece) => (piece.kind === "text" ? by(INSTANT, "instant", piece.text) : [piece]))
    .filter((piece) => piece.text !== "");
}

/** A noun that is no part of a longer name. A point that ends a sentence ends a name, too. */
function byNoun(text: string, noun: string, target: { to: string; search: Record<string, string> }): Piece[] {
  const escaped = noun.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return text
    .split(new RegExp(`(?<![\\w~.-])${escaped}(?![\\w~-]|\\.[\\w~])`))
    .flatMap((part, index): Piece[] => [
      ...(index > 0 ? [{ kind: "link", text: noun, ...target } as const] : []),
      { kind: "text", text: part },
    ]);
}

function by(pattern: RegExp, kind: "command" | "instant", text: string): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    found.push({ kind: "text", text: text.slice(from, match.index) }, { kind, text: match[0] });
    from = match.index + match[0].length;
  }
  return [...found, { kind: "text", text: text.slice(from) }];
}
