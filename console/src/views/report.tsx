import { useQuery } from "@tanstack/react-query";
import { ApiError } from "../api/client";
import { commands } from "../api/commands";
import { namespace } from "../api/queries";
import type { ReportRow } from "../api/report";
import { useNs, usePlace } from "../frame/place";
import { change as changed, dollars, duration, number, percent, withoutNamespace } from "../lib/format";
import { paths } from "../lib/paths";
import { Command } from "../parts/command";
import { Go, RunLink } from "../parts/go";
import { DayField } from "../parts/moment";
import { Await, Empty } from "../parts/panel";

type Value = number | string | null | undefined;
const num = (row: ReportRow, column: string) => row[column] as number | null | undefined;

const COLUMNS: { id: string; word: string; text: (row: ReportRow) => string; bad?: (row: ReportRow) => boolean }[] = [
  { id: "runs", word: "Runs", text: (row) => number(num(row, "runs") ?? 0) },
  {
    id: "failed",
    word: "Failed",
    text: (row) => number(num(row, "failed") ?? 0),
    bad: (row) => (num(row, "failed") ?? 0) > 0,
  },
  { id: "success_rate", word: "Success", text: (row) => percent(num(row, "success_rate")) },
  { id: "not_run", word: "Never ran", text: (row) => number(num(row, "not_run") ?? 0) },
  {
    id: "sla_misses",
    word: "Deadlines missed",
    text: (row) => text(row.sla_misses as Value),
    bad: (row) => (num(row, "sla_misses") ?? 0) > 0,
  },
  { id: "lateness_p95_ms", word: "Late p95", text: (row) => duration(num(row, "lateness_p95_ms")) },
  { id: "duration_p50_ms", word: "Took p50", text: (row) => duration(num(row, "duration_p50_ms")) },
  { id: "duration_p95_ms", word: "Took p95", text: (row) => duration(num(row, "duration_p95_ms")) },
  { id: "duration_p50_change", word: "p50, change", text: (row) => changed(num(row, "duration_p50_change")) },
  { id: "waited_p50_ms", word: "Waited p50", text: (row) => duration(num(row, "waited_p50_ms")) },
  { id: "cost_usd", word: "Cost", text: (row) => dollars(num(row, "cost_usd")) },
  { id: "cost_change", word: "Cost, change", text: (row) => changed(num(row, "cost_change")) },
];

const text = (value: Value) => (value === null || value === undefined ? "–" : String(value));

/** A day, workflow by workflow, with its cost and the change in a week. */
export function Report() {
  const ns = useNs();
  const { search, change } = usePlace();
  const query = useQuery(namespace.report(ns, search.day));
  const by = search.by ?? "cost_usd";
  return (
    <div className="page">
      <div className="page-head">
        <h1>Report</h1>
        <span className="faint">{query.data && `${query.data.day}, in UTC; changes are against a week before`}</span>
        <span className="space" />
        <span className="tools">
          <label>
            <span className="unseen">Day</span>
            <DayField value={search.day ?? query.data?.day ?? ""} take={(day) => change({ day: day || undefined })} />
          </label>
          <Command text={commands.report(ns, search.day)} />
        </span>
      </div>
      <section className="panel scroll-x">
        {isMissing(query.error) ? (
          <Empty>
            There is no report of {search.day ?? "the last days"} yet: it is written in the night after. For what was
            late, see{" "}
            <Go to={paths.view(ns, "runs")} search={{ by: "late" }}>
              the late runs
            </Go>{" "}
            and the{" "}
            <Go to={paths.view(ns, "timeline")} search={{ span: "10080" }}>
              timeline of 7 days
            </Go>
            .
          </Empty>
        ) : (
          <Await query={query}>
            {({ items }) =>
              items.length === 0 ? (
                <Empty>Nothing ended on this day.</Empty>
              ) : (
                <table className="report">
                  <thead>
                    <tr>
                      <th>Workflow</th>
                      {COLUMNS.map((column) => (
                        <th key={column.id} className="end" aria-sort={by === column.id ? "descending" : undefined}>
                          <button type="button" onClick={() => change({ by: column.id }, true)}>
                            {column.word} {by === column.id ? "↓" : ""}
                          </button>
                        </th>
                      ))}
                      <th>Last failure</th>
                    </tr>
                  </thead>
                  <tbody>
                    {[...items]
                      .sort((a, b) => (num(b, by) ?? -1) - (num(a, by) ?? -1))
                      .map((row) => (
                        <tr key={row.workflow}>
                          <td>
                            <Go
                              to={paths.view(ns, "schedules")}
                              search={{ q: `workflow:${row.workflow}` }}
                              className="name"
                            >
                              {withoutNamespace(row.workflow, ns) || "none"}
                            </Go>
                          </td>
                          {COLUMNS.map((column) => (
                            <td key={column.id} className={column.bad?.(row) ? "end bad-text" : "end"}>
                              {column.text(row)}
                            </td>
                          ))}
                          <td title={text(row.last_failure as Value)}>
                            {typeof row.last_failed_run === "string" && (
                              <>
                                <RunLink id={row.last_failed_run} />{" "}
                                <span className="faint">{text(row.last_failure as Value)}</span>
                              </>
                            )}
                          </td>
                        </tr>
                      ))}
                  </tbody>
                  <tfoot>
                    <tr>
                      <td>{number(items.length)} workflows</td>
                      <td className="end">{number(sum(items, "runs"))}</td>
                      <td className="end">{number(sum(items, "failed"))}</td>
                      <td colSpan={8} />
                      <td className="end">{dollars(sum(items, "cost_usd"))}</td>
                      <td colSpan={2} />
                    </tr>
                  </tfoot>
                </table>
              )
            }
          </Await>
        )}
      </section>
    </div>
  );
}

const isMissing = (error: unknown) => error instanceof ApiError && error.status === 404 && error.fault.field === "day";

const sum = (rows: ReportRow[], column: string) => rows.reduce((total, row) => total + (num(row, column) ?? 0), 0);
