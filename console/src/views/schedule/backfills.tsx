import { useQuery } from "@tanstack/react-query";
import { actions } from "../../api/actions";
import { schedule } from "../../api/queries";
import type { StoredBackfill } from "../../api/types";
import { usePlace } from "../../frame/place";
import { partition } from "../../lib/format";
import { paths } from "../../lib/paths";
import { ActButton } from "../../parts/act";
import { Chips } from "../../parts/filters";
import { Go } from "../../parts/go";
import { Await, Empty } from "../../parts/panel";
import { Reason, State, When } from "../../parts/text";

/** The backfills of a schedule, with their progress. */
export function BackfillsTable({ name }: { name: string }) {
  const { search } = usePlace();
  const query = useQuery(schedule.backfills(name));
  return (
    <Await query={query}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty>
            No backfills. <Go to={paths.backfill(name)}>Begin one</Go> to run this schedule for the past.
          </Empty>
        ) : (
          <div className="scroll-x">
            <div className="toolbar pad">
              <Chips of="state" label="State" options={STATES} />
            </div>
            <table>
              <thead>
                <tr>
                  <th className="fit">State</th>
                  <th className="fit">Range</th>
                  <th>Progress</th>
                  <th className="fit">Begun</th>
                  <th className="fit" />
                </tr>
              </thead>
              <tbody>
                {items.filter(fits(search.state)).map((backfill) => (
                  <tr key={backfill.backfill_id}>
                    <td className="fit">
                      <State state={backfill.state} />
                    </td>
                    <td className="fit">
                      <Range backfill={backfill} />
                    </td>
                    <td>
                      <Counts of={backfill} />
                      {backfill.reason && <Reason text={backfill.reason} />}
                    </td>
                    <td className="fit">
                      <When at={backfill.created_at} />
                    </td>
                    <td className="fit">
                      {backfill.state === "RUNNING" && (
                        <ActButton small action={actions.cancelBackfill(name, backfill.backfill_id)}>
                          Cancel
                        </ActButton>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )
      }
    </Await>
  );
}

const STATES = ["RUNNING", "DONE", "ENDED", "CANCELLED"];
const fits = (state: string | undefined) => (backfill: StoredBackfill) => !state || backfill.state === state;

function Range({ backfill }: { backfill: StoredBackfill }) {
  const ends = [backfill.first, backfill.last].map((end) => partition(end as Record<string, string> | null));
  if (ends[0] || ends[1]) return <>{ends.filter(Boolean).join(" to ")}</>;
  return (
    <>
      <When at={backfill.from} /> to <When at={backfill.to} />
    </>
  );
}

interface Counted {
  total: number | null;
  succeeded: number;
  failed: number;
  cancelled: number;
  running: number;
  waiting?: number | null;
}

/** How far work of many runs has come: a bar and the counts. */
export function Counts({ of }: { of: Counted }) {
  const total = of.total ?? of.succeeded + of.failed + of.cancelled + of.running + (of.waiting ?? 0);
  const parts = [
    { tone: "ok", many: of.succeeded, word: "succeeded" },
    { tone: "bad", many: of.failed, word: "failed" },
    { tone: "off", many: of.cancelled, word: "cancelled" },
    { tone: "run", many: of.running, word: "running" },
  ].filter((part) => part.many > 0);
  return (
    <span className="counts">
      <span className="counts-bar" aria-hidden="true">
        {parts.map((part) => (
          <span
            key={part.tone}
            className={`mark-${part.tone}`}
            style={{ width: `${(part.many / Math.max(1, total)) * 100}%` }}
          />
        ))}
      </span>
      <span>
        {parts.map((part) => `${part.many} ${part.word}`).join(", ") || "nothing yet"} of{" "}
        {of.total ?? "an unknown number"}
      </span>
    </span>
  );
}
