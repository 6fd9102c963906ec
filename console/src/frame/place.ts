// Where the reader is: the namespace and the search of the address, and how to change them.

import { useParams, useRouter, useSearch } from "@tanstack/react-router";
import { createContext, useCallback, useContext } from "react";
import { type Search, writeSearch } from "../lib/search";
import { type ZoneChoice, zoneName } from "../lib/zone";

export function useNs(): string {
  return (useParams({ strict: false }) as { ns?: string }).ns ?? "";
}

/** The zone of the schedule on the page, for the choice "the schedule's". */
export const ScheduleZone = createContext<string | null>(null);

export function useZoneChoice(): ZoneChoice {
  return useSearch({ strict: false, select: (search: Search) => (search.zone ?? "utc") as ZoneChoice });
}

/** The IANA name of the zone in which instants are shown. */
export function useZone(): string {
  const ofSchedule = useContext(ScheduleZone);
  return zoneName(useZoneChoice(), ofSchedule);
}

/** Go to an address, and keep the zone. */
export function useGo(): (to: string, search?: Search, replace?: boolean) => void {
  const router = useRouter();
  return useCallback(
    (to, search = {}, replace = false) => {
      const { zone } = router.state.location.search as Search;
      const href = to + writeSearch({ zone, ...search });
      if (replace) router.history.replace(href);
      else router.history.push(href);
    },
    [router],
  );
}

/** The search of the address, and a function that changes some of it. Typing replaces, a choice can be undone by Back. */
export function usePlace(): { search: Search; change: (patch: Search, replace?: boolean) => void } {
  const search = useSearch({ strict: false }) as Search;
  const router = useRouter();
  const change = useCallback(
    (patch: Search, replace = false) => {
      const { pathname, search: present } = router.state.location;
      const href = pathname + writeSearch({ ...(present as Search), ...patch });
      if (replace) router.history.replace(href);
      else router.history.push(href);
    },
    [router],
  );
  return { search, change };
}
