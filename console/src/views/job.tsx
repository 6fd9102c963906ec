import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useEffect } from "react";
import { actions } from "../api/actions";
import { ApiError } from "../api/client";
import { commands } from "../api/commands";
import { jobWhy, job as readJob } from "../api/queries";
import type { Job } from "../api/types";
import { useKeys } from "../frame/keys";
import { useGo, usePlace } from "../frame/place";
import { tell } from "../frame/settings";
import { asWritten, partition, shortId, shortName } from "../lib/format";
import { waitsFor } from "../lib/held";
import { ofRef, paths } from "../lib/paths";
import { ofPartition } from "../lib/sentence";
import { ActButton } from "../parts/act";
import { Command, copy } from "../parts/command";
import { PlaceInItsFire, useFireInstead } from "../parts/fire";
import { Go, PlaceInItsDag, ScheduleLink } from "../parts/go";
import { Await, Loading, Panel } from "../parts/panel";
import { Lasts, Reason, State, When } from "../parts/text";
import { Constraints, TriggerTree } from "../parts/tree";

/** What a job is, by its kind. */
const KINDS: Record<Job["kind"], string> = {
  gathering: "gathers what its trigger waits for",
  fire: "a fire of its clock",
  detached: "has what its trigger waits for",
  run_now: "somebody has run it",
  retry: "the next attempt of a run that failed",
  redrive: "an event that is sent again",
  backfill: "a part of a backfill",
};

/** A waiting job. Once it has become a run, the page is that of the run, which has the same id. */
export function JobView() {
  const { id = "" } = useParams({ strict: false }) as { id?: string };
  const shared = useFireInstead(id);
  const job = useQuery({ ...readJob(id), enabled: !shared });
  const why = useQuery({ ...jobWhy(id), enabled: !shared });
  const refs = ofPartition(why.data?.refs ?? [], partition(why.data?.correlation));
  const go = useGo();
  const { search } = usePlace();
  const gone = job.error instanceof ApiError && job.error.status === 404;
  useEffect(() => {
    if (gone) go(paths.run(id), search, true);
  }, [gone, go, id, search]);
  useKeys({ c: () => copy(commands.why("job", id)).then(() => tell("The command is copied")) });
  if (gone || shared) return <Loading />;
  return (
    <div className="page">
      <Await query={job}>
        {(data) => (
          <>
            <header className="page-head">
              <h1>
                <ScheduleLink name={data.schedule} />{" "}
                <span className="crumb">{partition(data.correlation) || shortId(id)}</span>
              </h1>
              <State state={data.state} />
              <PlaceInItsFire of={data} />
              <PlaceInItsDag of={data.dag} />
              <span className="space" />
              <span className="tools">
                {waitsFor(data, "approval") && (
                  <>
                    <ActButton action={actions.approve(id, data.correlation)} />
                    <ActButton action={actions.refuse(id, data.correlation)} />
                  </>
                )}
                <ActButton action={actions.cancelJob(id, data.correlation)} />
              </span>
            </header>
            <Panel title="Why" className="why" tools={<Command text={commands.why("job", id)} />}>
              <div className="body">
                <p className="because">
                  <Reason text={why.data?.why ?? data.reason} refs={refs} />
                </p>
                <p className="faint">
                  for <Lasts from={data.created_at} />
                  {why.data && (
                    <>
                      ; it goes on with <Reason text={why.data.wakes} refs={refs} />
                    </>
                  )}
                </p>
              </div>
              {why.data && (
                <div className="grid two split">
                  <div>
                    <div className="sub-head">
                      <h3>Trigger</h3>
                    </div>
                    {why.data.tree ? (
                      <TriggerTree node={why.data.tree} refs={refs} at={partition(data.correlation)} />
                    ) : (
                      <p className="faint">
                        {[...why.data.arrived, ...why.data.missing].join("; ") || "It needs no trigger."}
                      </p>
                    )}
                  </div>
                  <div>
                    <div className="sub-head">
                      <h3>Constraints</h3>
                    </div>
                    <Constraints constraints={why.data.constraints} limits={why.data.limits} refs={refs} />
                  </div>
                </div>
              )}
            </Panel>
            <Panel title="Job">
              <div className="body">
                <dl className="facts">
                  <dt>Id</dt>
                  <dd>
                    <code>{id}</code>
                  </dd>
                  <dt>Schedule</dt>
                  <dd>{shortName(data.schedule)}</dd>
                  <dt>Kind</dt>
                  <dd>{KINDS[data.kind]}</dd>
                  <dt>Made at</dt>
                  <dd>
                    <When at={data.created_at} as="second" />
                  </dd>
                  <dt>Trigger met at</dt>
                  <dd>
                    <When at={data.met_at} as="second" />
                  </dd>
                  {data.queue && (
                    <>
                      <dt>Queue</dt>
                      <dd>
                        {data.queued_in ? (
                          <Go {...(ofRef("limit", data.queued_in) ?? { to: "/" })}>{data.queue.of}</Go>
                        ) : (
                          data.queue.of
                        )}
                        :{" "}
                        {data.queue.position === null ? "behind a thousand others" : `position ${data.queue.position}`}{" "}
                        of {data.queue.waiting}
                      </dd>
                    </>
                  )}
                  {data.holds.length > 0 && (
                    <>
                      <dt>Holds</dt>
                      <dd>{data.holds.map(asWritten).join(", ")}</dd>
                    </>
                  )}
                  {data.inherited_priority !== null && (
                    <>
                      <dt>Inherited priority</dt>
                      <dd>
                        <Reason text={data.inherited_priority} />
                      </dd>
                    </>
                  )}
                  {data.approvals.length > 0 && (
                    <>
                      <dt>Approved by</dt>
                      <dd>{data.approvals.map((given) => given.by).join(", ")}</dd>
                    </>
                  )}
                </dl>
              </div>
            </Panel>
          </>
        )}
      </Await>
    </div>
  );
}
