import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Outlet, useRouterState } from "@tanstack/react-router";
import {
  Boxes,
  CalendarClock,
  ChartGantt,
  CircleHelp,
  Database,
  Gauge,
  Grid3x3,
  House,
  ListOrdered,
  type LucideIcon,
  Mail,
  MailX,
  Moon,
  Play,
  Receipt,
  RotateCcw,
  Search as SearchIcon,
  Share2,
  Sun,
  SunMoon,
  Workflow,
} from "lucide-react";
import { useEffect, useState } from "react";
import { ApiError, hasToken } from "../api/client";
import { about, namespaces } from "../api/queries";
import { paths } from "../lib/paths";
import { show, ZONE_CHOICES, type ZoneChoice, zoneLabel, zoneName } from "../lib/zone";
import { ActProvider } from "../parts/act";
import { Go } from "../parts/go";
import { Failure } from "../parts/panel";
import { Help } from "./help";
import { useKeys } from "./keys";
import { Palette } from "./palette";
import { useGo, useNs, usePlace, useZone, useZoneChoice } from "./place";
import { nextTheme, useNotices, useNow, useTheme } from "./settings";

export interface ViewName {
  path: string;
  name: string;
  key?: string;
  icon: LucideIcon;
}

export const VIEWS: readonly ViewName[] = [
  { path: "", name: "Home", key: "h", icon: House },
  { path: "schedules", name: "Schedules", key: "s", icon: CalendarClock },
  { path: "periods", name: "Periods", key: "e", icon: Grid3x3 },
  { path: "timeline", name: "Timeline", key: "t", icon: ChartGantt },
  { path: "queue", name: "Queue", key: "q", icon: ListOrdered },
  { path: "runs", name: "Runs", key: "r", icon: Play },
  { path: "dags", name: "DAGs", key: "d", icon: Workflow },
  { path: "workflows", name: "Workflows", key: "w", icon: Boxes },
  { path: "messages", name: "Messages", key: "n", icon: Mail },
  { path: "graph", name: "Lineage", key: "l", icon: Share2 },
  { path: "datasets", name: "Datasets", key: "a", icon: Database },
  { path: "limits", name: "Limits", key: "m", icon: Gauge },
  { path: "reprocess", name: "Reprocess", key: "p", icon: RotateCcw },
  { path: "dead-letters", name: "Dead letters", key: "x", icon: MailX },
  { path: "report", name: "Report", key: "c", icon: Receipt },
];

export function viewPath(ns: string, view: ViewName): string {
  return view.path ? paths.view(ns, view.path) : paths.home(ns);
}

export function Frame() {
  const ns = useNs();
  const [palette, setPalette] = useState(false);
  const [help, setHelp] = useState(false);
  const go = useGo();
  const cycleZone = useCycleZone();
  useKeys(
    {
      "ctrl k": () => setPalette(true),
      "?": () => setHelp(true),
      z: cycleZone,
      ...Object.fromEntries(VIEWS.map((view) => [`g ${view.key}`, ns ? () => go(viewPath(ns, view)) : undefined])),
    },
    "frame",
  );
  const known = useQuery(about);
  const refused = known.error instanceof ApiError && known.error.status === 401;
  return (
    <ActProvider>
      <a className="skip" href="#main">
        Skip to the view
      </a>
      <div className="frame">
        <Rail ns={ns} />
        <TopBar openPalette={() => setPalette(true)} openHelp={() => setHelp(true)} />
        <main id="main" tabIndex={-1}>
          {refused ? (
            <div className="page narrow">
              <h1>{hasToken() ? "This page belongs to an earlier start" : "This page has no token"}</h1>
              <Failure error={known.error} />
            </div>
          ) : (
            <Outlet />
          )}
        </main>
      </div>
      {palette && <Palette ns={ns} close={() => setPalette(false)} />}
      {help && <Help close={() => setHelp(false)} />}
      <Notices />
    </ActProvider>
  );
}

function Rail({ ns }: { ns: string }) {
  const path = useRouterState({ select: (state) => state.location.pathname });
  return (
    <nav className="rail" aria-label="Views">
      <Go to="/" className="brand">
        <img src="/favicon.svg" width="20" height="20" alt="" />
        <span>Sluice</span>
      </Go>
      {ns &&
        VIEWS.map((view) => {
          const to = viewPath(ns, view);
          const here = view.path ? path.startsWith(to) : path === to;
          return (
            <Go key={view.name} to={to} aria-current={here ? "page" : undefined} title={`${view.name} (g ${view.key})`}>
              <view.icon size={16} aria-hidden="true" />
              <span>{view.name}</span>
            </Go>
          );
        })}
    </nav>
  );
}

function TopBar({ openPalette, openHelp }: { openPalette: () => void; openHelp: () => void }) {
  const ns = useNs();
  const go = useGo();
  const known = useQuery(about).data;
  // The view comes first: its answer need not wait for that of a list that few open.
  const spaces = useQuery({ ...namespaces, enabled: useAnswered() }).data?.items ?? [];
  const theme = useTheme();
  const ThemeIcon = { auto: SunMoon, light: Sun, dark: Moon }[theme];
  const stage = known?.stage ?? null;
  const names = spaces.map((space) => space.name);
  return (
    <header className="top">
      <label>
        <span className="unseen">Namespace</span>
        <select value={ns} onChange={(event) => go(paths.home(event.target.value))}>
          {!names.includes(ns) && <option value={ns}>{ns || "choose a namespace"}</option>}
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      {stage && (
        <span className={stage === "prod" ? "stage prod" : "stage"} title={known?.api}>
          {stage}
          {known?.account ? ` · ${known.account}` : ""}
          {known?.region ? ` · ${known.region}` : ""}
        </span>
      )}
      {known?.read_only && (
        <span className="stage" title="Started with --read-only: reads and dry runs are sent, no change is">
          read only
        </span>
      )}
      <button type="button" className="search" onClick={openPalette}>
        <SearchIcon size={14} aria-hidden="true" />
        <span>Go to a name, id or view</span>
        <kbd>ctrl k</kbd>
      </button>
      <span className="space" />
      <Age />
      <ZoneSwitch />
      <button
        type="button"
        className="icon-button"
        onClick={nextTheme}
        aria-label={`Theme: ${theme}. Change it`}
        title={`Theme: ${theme}`}
      >
        <ThemeIcon size={16} />
      </button>
      <button type="button" className="icon-button" onClick={openHelp} aria-label="Keys" title="Keys (?)">
        <CircleHelp size={16} />
      </button>
    </header>
  );
}

function useCycleZone(): () => void {
  const choice = useZoneChoice();
  const { change } = usePlace();
  return () => {
    const next = ZONE_CHOICES[(ZONE_CHOICES.indexOf(choice) + 1) % ZONE_CHOICES.length];
    change({ zone: next === "utc" ? undefined : next });
  };
}

function ZoneSwitch() {
  const choice = useZoneChoice();
  const { change } = usePlace();
  return (
    <label>
      <span className="unseen">Time zone</span>
      <select
        value={choice}
        title="Time zone (z)"
        onChange={(event) => change({ zone: event.target.value === "utc" ? undefined : event.target.value })}
      >
        {ZONE_CHOICES.map((zone: ZoneChoice) => (
          <option key={zone} value={zone}>
            {zone === "utc" ? "UTC" : zone === "local" ? `local: ${zoneLabel(zoneName("local"))}` : "the schedule's"}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Whether the API has answered a first request of the view, or two seconds have passed. */
function useAnswered(): boolean {
  const queries = useQueryClient();
  const [answered, setAnswered] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setAnswered(true), 2000);
    const end = queries.getQueryCache().subscribe((event) => {
      const mine = event.query.queryKey[0] !== about.queryKey[0];
      if (mine && event.type === "updated" && ["success", "error"].includes(event.action.type)) setAnswered(true);
    });
    return () => {
      clearTimeout(timer);
      end();
    };
  }, [queries]);
  return answered;
}

/** When the newest answer on this page came. */
function Age() {
  const queries = useQueryClient();
  const zone = useZone();
  const now = useNow();
  const [updated, setUpdated] = useState(0);
  const [silent, setSilent] = useState(false);
  useEffect(() => {
    const cache = queries.getQueryCache();
    return cache.subscribe((event) => {
      if (event.type === "updated" && event.action.type === "success") setUpdated(Date.now());
      // As long as one part of the page has no answer, the page is not live.
      setSilent(cache.getAll().some((query) => query.isActive() && isSilent(query.state.error)));
    });
  }, [queries]);
  if (!updated) return null;
  const live = now - updated < 60_000 && !silent;
  return (
    <span className="age" title="when the newest answer came">
      at {show(updated, zone, "clock")}{" "}
      <span className={live ? "live" : "faint"}>{live ? "live" : silent ? "no answer" : "old"}</span>
    </span>
  );
}

/** Whether an error is that of an API that cannot be reached or does not work, not its answer. */
const isSilent = (error: unknown) => error instanceof ApiError && (error.status === 0 || error.status >= 500);

function Notices() {
  const notices = useNotices();
  return (
    <div className="notices" role="status" aria-live="polite">
      {notices.map((notice) => (
        <div key={notice.id} className={notice.bad ? "notice bad" : "notice"}>
          {notice.text} {notice.to && <Go to={notice.to}>Show</Go>}
        </div>
      ))}
    </div>
  );
}
