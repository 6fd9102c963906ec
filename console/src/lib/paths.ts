// The address of each view. A name or id comes in as the API writes it.

import { fireOf, isBundle } from "./fires";
import { isOfMessage, nameParts } from "./format";

const word = encodeURIComponent;

const byName = (kind: string) => (name: string) => {
  const { ns, app, name: last } = nameParts(name);
  return `/${word(ns)}/${kind}/${word(app)}/${word(last)}`;
};

const ofTwo = (kind: string) => (name: string) => {
  const [ns = "", ...rest] = name.split(".");
  return `/${word(ns)}/${kind}/${word(rest.join("."))}`;
};

const nsOf = (id: string) => word(id.split(".")[0] ?? "");

const fire = (id: string) => `/${nsOf(id)}/fires/${word(id)}`;
/** Work by its id. Events that share a row are shown by their fire. */
const work = (view: string) => (id: string) =>
  isBundle(id) ? fire(fireOf(id) ?? id) : `/${nsOf(id)}/${view}/${word(id)}`;

export const paths = {
  home: (ns: string) => `/${word(ns)}`,
  view: (ns: string, view: string) => `/${word(ns)}/${view}`,
  schedule: byName("schedules"),
  backfill: (name: string) => `${byName("schedules")(name)}/backfill`,
  dag: byName("dags"),
  message: (name: string) => byName("messages")(name.replace(/\.~([^.]+)$/, ".$1")),
  dataset: ofTwo("datasets"),
  run: work("runs"),
  job: work("jobs"),
  fire,
  reprocess: (ns: string, id: string) => `/${word(ns)}/reprocess/${word(id)}`,
  open: (name: string) => `/open/${word(name)}`,
};

/** The address of a definition, run or job by its collection in the API: `/schedules/demo.flights.clean`. */
export function ofCollection(collection: string, name: string): { to: string; search: Record<string, string> } {
  const { ns, app } = nameParts(name);
  if (collection === "namespaces") return { to: paths.home(name), search: {} };
  if (collection === "apps") return { to: paths.view(ns, "schedules"), search: { q: `app:${app}` } };
  const kind = collection === "policies" ? "policy" : collection.slice(0, -1);
  return ofRef(kind, name) ?? { to: paths.open(name), search: {} };
}

export const COLLECTIONS = [
  "namespaces",
  "apps",
  "workflows",
  "schedules",
  "dags",
  "datasets",
  "policies",
  "pools",
  "calendars",
  "messages",
  "runs",
  "jobs",
  "fires",
];

/** The address of what a sentence of the API names, with its query; null if there is no view for it. */
export function ofRef(kind: string, name: string): { to: string; search: Record<string, string> } | null {
  const ns = (name.split(":").at(-1) ?? name).split(".")[0] ?? "";
  switch (kind) {
    case "schedule":
      return { to: isOfMessage(name) ? paths.message(name) : paths.schedule(name), search: {} };
    case "workflow":
      return { to: paths.view(ns, "schedules"), search: { q: `workflow:${name}` } };
    case "dataset":
      return { to: paths.dataset(name), search: {} };
    case "run":
      return { to: paths.run(name), search: {} };
    case "job":
      return { to: paths.job(name), search: {} };
    case "fire":
      return { to: paths.fire(name), search: {} };
    case "dag":
      return { to: paths.dag(name), search: {} };
    case "message":
      return { to: paths.message(name), search: {} };
    case "pool":
    case "policy":
    case "group":
    case "limit":
      return { to: paths.view(ns, "limits"), search: { name: kind === "limit" ? name : `${kind}:${name}` } };
    default:
      return null;
  }
}
