import { useQuery } from "@tanstack/react-query";
import { schedule } from "../../api/queries";
import { useNs, useZone } from "../../frame/place";
import { paths } from "../../lib/paths";
import { countsInWords, lookOfDay, monthsAbove, weeks } from "../../lib/weeks";
import { Go } from "../../parts/go";
import { Await } from "../../parts/panel";
import { WeekdayNames } from "../../parts/weekdays";

const WORDS = { none: "", ok: "✓", some: "!", bad: "✗", never: "⤫", run: "▶" };

/** 26 weeks of days: what ran and failed on each; a cell opens the runs of its day. */
export function Calendar({ name }: { name: string }) {
  const ns = useNs();
  const zone = useZone();
  const query = useQuery(schedule.days(name, zone));
  return (
    <Await query={query}>
      {(data) => (
        <div className="calendar" role="group" aria-label={`Days from ${data.from} to ${data.to}`}>
          <WeekdayNames />
          {weeks(data.from, data.to, data.days).map((week, number, all) => {
            return (
              <div key={number} className="calendar-week">
                <span className="calendar-month">{monthsAbove(all)[number]}</span>
                {week.map((day, index) => {
                  if (!day) return <span key={index} className="calendar-cell outside" />;
                  const look = lookOfDay(day.counts);
                  const words = `${day.day}: ${countsInWords(day.counts)}`;
                  return (
                    <Go
                      key={day.day}
                      to={paths.view(ns, "runs")}
                      search={{ schedule: name, day: day.day }}
                      className={`calendar-cell ${look}`}
                      title={words}
                      aria-label={words}
                    >
                      {WORDS[look]}
                    </Go>
                  );
                })}
              </div>
            );
          })}
          {data.at_least && (
            <p className="faint">Whole from {data.complete_from} on: the days before have at least these counts.</p>
          )}
        </div>
      )}
    </Await>
  );
}
