import { useQuery } from "@tanstack/react-query";
import { commands } from "../api/commands";
import { namespace } from "../api/queries";
import type { Limit } from "../api/types";
import { useNs, usePlace } from "../frame/place";
import { number, withoutNamespace } from "../lib/format";
import { Command } from "../parts/command";
import { JobLink, RunLink, ScheduleLink } from "../parts/go";
import { Await, Empty, Panel } from "../parts/panel";
import { Ago, State, When } from "../parts/text";

/** Pools, policies, and every limit in which someone waits: what is in use, and the queue in its order. */
export function Limits() {
  const ns = useNs();
  const { search, change } = usePlace();
  const query = useQuery(namespace.limits(ns));
  return (
    <div className="page">
      <div className="page-head">
        <h1>Limits</h1>
        <span className="faint">pools, policies, and limits with a queue</span>
        <span className="space" />
        <Command text={commands.pools(ns)} />
      </div>
      <div className="grid wide-left start">
        <section className="panel scroll-x">
          <Await query={query}>
            {({ items }) =>
              items.length === 0 ? (
                <Empty command="sluice apply app.yaml">
                  No pools, no policies, and nobody waits in a queue. An app document may have pools and policies.
                </Empty>
              ) : (
                <table>
                  <thead>
                    <tr>
                      <th>Kind</th>
                      <th>Name</th>
                      <th>In use</th>
                      <th className="end">Wait</th>
                      <th>Next start</th>
                    </tr>
                  </thead>
                  <tbody>
                    {items.map((limit) => (
                      <tr key={limit.name} aria-current={search.name === limit.name}>
                        <td className="fit faint">{limit.kind}</td>
                        <td>
                          <button type="button" className="link name" onClick={() => change({ name: limit.name })}>
                            {withoutNamespace(limit.name.split(":").slice(1).join(":") || limit.name, ns)}
                          </button>
                        </td>
                        <td>
                          <Use of={limit} />
                        </td>
                        <td className="end">{number(limit.waiting)}</td>
                        <td className="fit">
                          {limit.next_at ? <Ago at={limit.next_at} /> : <span className="faint">–</span>}
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              )
            }
          </Await>
        </section>
        {search.name ? (
          <OneLimit ns={ns} name={search.name} />
        ) : (
          <Panel title="One limit">
            <Empty>Choose a limit to see who holds it and who waits for it.</Empty>
          </Panel>
        )}
      </div>
    </div>
  );
}

function Use({ of }: { of: Limit }) {
  if (of.in_use === null) return <span className="faint">–</span>;
  const share = of.maximum ? Math.min(1, of.in_use / of.maximum) : 0;
  return (
    <span className="counts">
      {of.maximum !== null && (
        <span className="counts-bar" aria-hidden="true">
          <span className={share >= 1 ? "full" : "used"} style={{ width: `${share * 100}%` }} />
        </span>
      )}
      <span className="num">
        {number(of.in_use)}
        {of.maximum !== null && ` of ${number(of.maximum)}`} {of.unit}
      </span>
    </span>
  );
}

function OneLimit({ ns, name }: { ns: string; name: string }) {
  const query = useQuery(namespace.limits(ns, name));
  return (
    <Await query={query}>
      {({ items }) => {
        const limit = items[0];
        if (!limit) return <Empty>No limit is named {name}.</Empty>;
        return (
          <div className="grid start">
            <Panel title={withoutNamespace(limit.of, ns)} note={limit.kind}>
              <div className="body grid start">
                <Use of={limit} />
                {limit.next_at && (
                  <p>
                    it lets the next start at <When at={limit.next_at} as="second" />
                  </p>
                )}
              </div>
            </Panel>
            <Panel
              title="In use by"
              note={limit.holders ? number(limit.holders.length, limit.at_least) : "it does not list its holders"}
            >
              {limit.holders?.length === 0 && <Empty>Nobody.</Empty>}
              <table>
                <tbody>
                  {limit.holders?.map((holder) => (
                    <tr key={`${holder.run_id} ${holder.attempt}`}>
                      <td className="fit">
                        <State state={holder.state} word={false} /> <ScheduleLink name={holder.schedule} />
                      </td>
                      <td>
                        <RunLink id={holder.run_id} />
                      </td>
                      <td className="end">
                        <Ago at={holder.since} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Panel>
            <Panel title="Queue" note={`${number(limit.waiting)} wait, in this order`}>
              {limit.waiters?.length === 0 && <Empty>Nobody waits.</Empty>}
              <table>
                <tbody>
                  {limit.waiters?.map((waiter) => (
                    <tr key={`${waiter.job_id} ${waiter.position}`}>
                      <td className="end fit">{waiter.position}</td>
                      <td>
                        <ScheduleLink name={waiter.schedule} />
                      </td>
                      <td className="end">
                        {waiter.attempt === null ? (
                          <JobLink id={waiter.job_id} />
                        ) : (
                          <RunLink id={waiter.job_id}>attempt {waiter.attempt}</RunLink>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Panel>
          </div>
        );
      }}
    </Await>
  );
}
