import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { Frame } from "./frame/frame";
import { COLLECTIONS } from "./lib/paths";
import { parseSearch, readSearch, writeSearch } from "./lib/search";
import { Gone, NoNamespace } from "./views/start";

const root = createRootRoute({ component: Frame, validateSearch: readSearch, notFoundComponent: Gone });

const at = (path: string, load: () => Promise<Record<string, unknown>>, name: string) =>
  createRoute({ getParentRoute: () => root, path, component: lazyRouteComponent(load as never, name as never) });

const routes = [
  createRoute({ getParentRoute: () => root, path: "/", component: NoNamespace }),
  at("/open/$name", () => import("./views/start"), "Open"),
  ...COLLECTIONS.map((collection) => at(`/${collection}/$name`, () => import("./views/start"), "OpenAt")),
  at("/$ns", () => import("./views/home"), "Home"),
  at("/$ns/schedules", () => import("./views/schedules"), "Schedules"),
  at("/$ns/schedules/$app/$name", () => import("./views/schedule"), "Schedule"),
  at("/$ns/schedules/$app/$name/backfill", () => import("./views/backfill"), "Backfill"),
  at("/$ns/periods", () => import("./views/periods"), "Periods"),
  at("/$ns/timeline", () => import("./views/timeline"), "TimelineView"),
  at("/$ns/queue", () => import("./views/queue"), "Queue"),
  at("/$ns/jobs/$id", () => import("./views/job"), "JobView"),
  at("/$ns/runs", () => import("./views/runs"), "Runs"),
  at("/$ns/runs/$id", () => import("./views/run"), "RunView"),
  at("/$ns/fires/$id", () => import("./views/fire"), "FireView"),
  at("/$ns/dags", () => import("./views/dags"), "Dags"),
  at("/$ns/dags/$app/$name", () => import("./views/dag"), "DagView"),
  at("/$ns/workflows", () => import("./views/workflows"), "Workflows"),
  at("/$ns/messages", () => import("./views/messages"), "Messages"),
  at("/$ns/messages/$app/$name", () => import("./views/message"), "MessageView"),
  at("/$ns/graph", () => import("./views/graph"), "GraphView"),
  at("/$ns/datasets", () => import("./views/datasets"), "Datasets"),
  at("/$ns/datasets/$name", () => import("./views/dataset"), "DatasetView"),
  at("/$ns/limits", () => import("./views/limits"), "Limits"),
  at("/$ns/reprocess", () => import("./views/reprocess"), "Reprocess"),
  at("/$ns/reprocess/$id", () => import("./views/reprocess"), "OneReprocess"),
  at("/$ns/dead-letters", () => import("./views/dead-letters"), "DeadLetters"),
  at("/$ns/report", () => import("./views/report"), "Report"),
];

export const router = createRouter({
  routeTree: root.addChildren(routes),
  parseSearch,
  stringifySearch: writeSearch,
  defaultPreload: false,
  scrollRestoration: false,
});
