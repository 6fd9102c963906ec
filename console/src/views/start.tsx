// Where the console begins, and what it says of addresses that lead nowhere.

import { useQuery } from "@tanstack/react-query";
import { useParams, useRouterState } from "@tanstack/react-router";
import { useEffect } from "react";
import { ApiError, fill, send } from "../api/client";
import { about, namespaces } from "../api/queries";
import { useGo, usePlace } from "../frame/place";
import { nameParts } from "../lib/format";
import { COLLECTIONS, ofCollection, paths } from "../lib/paths";
import type { Search } from "../lib/search";
import { Go } from "../parts/go";
import { Await, Empty, Failure, Loading } from "../parts/panel";

/** The namespaces; with one, or with that of the environment, the console goes on at once. */
export function NoNamespace() {
  const known = useQuery(about);
  const spaces = useQuery(namespaces);
  const go = useGo();
  const mine = spaces.data?.items.filter((space) => space.name !== "system") ?? [];
  const target = known.data?.namespace ?? (mine.length === 1 ? mine[0]?.name : undefined);
  useEffect(() => {
    if (target) go(paths.home(target), {}, true);
  }, [target, go]);
  return (
    <div className="page narrow">
      <h1>Namespaces</h1>
      <section className="panel">
        <Await query={spaces}>
          {(data) =>
            data.items.length === 0 ? (
              <Empty command="sluice init first-app">
                This installation has no namespace yet. A first app makes one: the command writes it, with a job and
                sample data, and prints what to do next.
              </Empty>
            ) : (
              <table>
                <tbody>
                  {data.items.map((space) => (
                    <tr key={space.name}>
                      <td>
                        <Go to={paths.home(space.name)} className="name">
                          {space.name}
                        </Go>
                      </td>
                      <td dir="auto">{space.description}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )
          }
        </Await>
      </section>
    </div>
  );
}

export function Gone() {
  return (
    <div className="page narrow">
      <h1>No view has this address</h1>
      <Empty>
        The address may belong to another version of the console. <Go to="/">Begin at the namespaces</Go>, or search
        with <kbd>ctrl k</kbd>.
      </Empty>
    </div>
  );
}

/** `/schedules/NAME` and its like, which `sluice open` opens. What the address says besides goes along: `/runs/ID?tab=log`. */
export function OpenAt() {
  const { search: given } = usePlace();
  const { name = "" } = useParams({ strict: false }) as { name?: string };
  const path = useRouterState({ select: (state) => state.location.pathname });
  const go = useGo();
  useEffect(() => {
    const collection = path.split("/")[1] ?? "";
    // This view is still there for a moment after the address has changed to the one it leads to.
    if (!COLLECTIONS.includes(collection)) return;
    const { to, search } = ofCollection(collection, name);
    go(to, { ...given, ...search }, true);
  }, [path, name, given, go]);
  return <Loading />;
}

/** `/open/NAME`: the view of the thing that has this name or id. */
export function Open() {
  const { name = "" } = useParams({ strict: false }) as { name?: string };
  const found = useQuery({ queryKey: ["open", name], queryFn: () => whereIs(name), retry: false });
  const { search: given } = usePlace();
  const go = useGo();
  useEffect(() => {
    if (found.data) go(found.data.to, { ...given, ...found.data.search }, true);
  }, [found.data, given, go]);
  return (
    <div className="page narrow">
      <h1>{name}</h1>
      {found.error ? <Failure error={found.error} /> : <Loading />}
    </div>
  );
}

interface Where {
  to: string;
  search?: Search;
}

async function whereIs(name: string): Promise<Where> {
  const { ns, app, name: last } = nameParts(name);
  const parts = name.split(".").length;
  const tries: [request: string, to: string, search?: Search][] =
    parts >= 4
      ? [
          [fill("/v1/runs/{name}", { name }), paths.run(name)],
          [fill("/v1/jobs/{name}", { name }), paths.job(name)],
          [fill("/v1/fires/{name}", { name }), paths.fire(name)],
          [fill("/v1/runs/{name}/why", { name }), paths.run(name)],
        ]
      : parts === 3
        ? [
            [fill("/v1/namespaces/{ns}/apps/{app}/schedules/{last}", { ns, app, last }), paths.schedule(name)],
            [fill("/v1/namespaces/{ns}/apps/{app}/dags/{last}", { ns, app, last }), paths.dag(name)],
          ]
        : parts === 2
          ? [
              [fill("/v1/namespaces/{ns}/datasets/{app}", { ns, app }), paths.dataset(name)],
              [
                fill("/v1/namespaces/{ns}/pools/{app}", { ns, app }),
                paths.view(ns, "limits"),
                { name: `pool:${name}` },
              ],
              [
                fill("/v1/namespaces/{ns}/policies/{app}", { ns, app }),
                paths.view(ns, "limits"),
                { name: `policy:${name}` },
              ],
              [fill("/v1/namespaces/{ns}/apps/{app}", { ns, app }), paths.view(ns, "schedules"), { q: `app:${app}` }],
            ]
          : [[fill("/v1/namespaces/{ns}", { ns }), paths.home(ns)]];
  for (const [path, to, search] of tries) {
    try {
      await send("GET", path);
      return { to, search };
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
    }
  }
  throw new ApiError(404, {
    code: "not_found",
    message: `nothing is named '${name}'`,
    hint: "names have dots: demo, demo.flights (a dataset), demo.flights.clean (a schedule); ids of runs and jobs have four parts",
  });
}
