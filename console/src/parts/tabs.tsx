import { useRouterState } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { usePlace } from "../frame/place";
import { Go } from "./go";

export interface Tab {
  id: string;
  word: string;
  count?: string;
}

/** Parts of a page, of which the address names the open one. The first is open by default. A part that the address
 * names is brought into view if it lies below the window. */
export function Tabs({ tabs }: { tabs: readonly Tab[] }) {
  const { search } = usePlace();
  const path = useRouterState({ select: (state) => state.location.pathname });
  const open = openTab(tabs, search.tab);
  const bar = useRef<HTMLElement>(null);
  const named = open !== tabs[0]?.id ? open : null;
  useEffect(() => {
    if (named === null || bar.current === null) return;
    const isLow = bar.current.getBoundingClientRect().top > window.innerHeight * 0.6;
    if (isLow) bar.current.scrollIntoView({ block: "start" });
  }, [named]);
  return (
    <nav className="tabs" aria-label="Parts of this page" ref={bar}>
      {tabs.map((tab, index) => (
        <Go
          key={tab.id}
          to={path}
          search={index === 0 ? {} : { tab: tab.id }}
          aria-current={open === tab.id ? "page" : undefined}
        >
          {tab.word}
          {tab.count !== undefined && <span className="count">{tab.count}</span>}
        </Go>
      ))}
    </nav>
  );
}

export function openTab(tabs: readonly Tab[], wanted: string | undefined): string {
  return tabs.find((tab) => tab.id === wanted)?.id ?? tabs[0]?.id ?? "";
}
