// The attempts of a range, page after page, newest first: the API cuts at 5,000.

import { queryOptions } from "@tanstack/react-query";
import { get } from "../../api/client";
import { client } from "../../api/queries";
import type { Timeline } from "../../api/types";

export const MOST = 100_000;
/** Attempts of the first page, which is shown soon, and of the others. */
const FIRST_PAGE = 200;
const PAGE = 5_000;

export interface Attempts {
  names: string[];
  workflows: string[];
  states: string[];
  row: number[];
  at: number[];
  waited: number[];
  starting: number[];
  took: (number | null)[];
  state: number[];
  /** How many sent events of a large fire an attempt stands for; mostly 1. */
  count: number[];
  /** How many attempts these are, each of those events counted. */
  attempts: number;
  /** Nothing is missing from this instant on; null while more is read. */
  completeFrom: string | null;
  atLeast: boolean;
}

export function timelineOf(ns: string, from: string, to: string, live: boolean, schedule?: string) {
  const queryKey = [ns, "timeline", from, to, schedule ?? ""];
  return queryOptions<Attempts>({
    queryKey,
    // Comparing 100,000 attempts with those before takes longer than drawing them.
    structuralSharing: false,
    // Of one that was left before all had come, the rest is read when one comes back.
    staleTime: (query) => (query.state.data?.completeFrom === null ? 0 : live ? 5_000 : 300_000),
    refetchInterval: live ? 15_000 : false,
    queryFn: async ({ signal }): Promise<Attempts> => {
      const shown = client.getQueryData<Attempts>(queryKey);
      const all: Attempts = {
        names: [],
        workflows: [],
        states: [],
        row: [],
        at: [],
        waited: [],
        starting: [],
        took: [],
        state: [],
        count: [],
        attempts: 0,
        completeFrom: null,
        atLeast: false,
      };
      const known = { names: new Map<string, number>(), states: new Map<string, number>() };
      let until = to;
      let pages = 0;
      for (;;) {
        const page: Timeline = await get(
          "/v1/namespaces/{ns}/timeline",
          { ns },
          { query: { from, to: until, limit: all.row.length || shown ? PAGE : FIRST_PAGE, schedule }, signal },
        );
        append(all, page, known);
        const done = !page.at_least || all.row.length >= MOST || page.complete_from >= until;
        all.atLeast = page.at_least;
        all.completeFrom = page.complete_from;
        if (done) return all;
        // Each part that is shown is merged again, so only the first two and some more are.
        pages += 1;
        if (!shown && (pages <= 2 || pages % 5 === 0)) client.setQueryData(queryKey, copyOf(all));
        until = page.complete_from;
      }
    },
  });
}

/** What has come so far; the columns themselves go on growing. */
function copyOf(all: Attempts): Attempts {
  const { row, at, waited, starting, took, state, count } = all;
  return {
    ...all,
    row: [...row],
    at: [...at],
    waited: [...waited],
    starting: [...starting],
    took: [...took],
    state: [...state],
    count: [...count],
    completeFrom: null,
  };
}

/** The numbers of the names and states that have come: a search among 10,000 names for each of them takes seconds. */
interface Known {
  names: Map<string, number>;
  states: Map<string, number>;
}

function append(all: Attempts, page: Timeline, known: Known): void {
  const rows = page.names.map((name, index) => {
    const row = known.names.get(name);
    if (row !== undefined) return row;
    all.workflows.push(page.workflows[index] ?? "");
    known.names.set(name, all.names.length);
    return all.names.push(name) - 1;
  });
  const states = page.states.map((state) => {
    const place = known.states.get(state);
    if (place !== undefined) return place;
    known.states.set(state, all.states.length);
    return all.states.push(state) - 1;
  });
  for (let index = 0; index < page.row.length; index++) {
    all.row.push(rows[page.row[index] ?? 0] ?? 0);
    all.at.push(page.at[index] ?? 0);
    all.waited.push(page.waited[index] ?? 0);
    all.starting.push(page.starting?.[index] ?? 0);
    all.took.push(page.took[index] ?? null);
    all.state.push(states[page.state[index] ?? 0] ?? 0);
    all.count.push(page.count[index] ?? 1);
    all.attempts += page.count[index] ?? 1;
  }
}
