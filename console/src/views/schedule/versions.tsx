import { useQuery } from "@tanstack/react-query";
import { schedule } from "../../api/queries";
import type { VersionOfSchedule } from "../../api/types";
import { usePlace } from "../../frame/place";
import { differences, lineDiff } from "../../lib/diff";
import { person } from "../../lib/format";
import { Await, Panel } from "../../parts/panel";
import { When } from "../../parts/text";

/** Every version, and any two of them side by side. */
export function Versions({ name }: { name: string }) {
  const query = useQuery(schedule.versions(name));
  const { search, change } = usePlace();
  return (
    <Await query={query}>
      {({ items }) => {
        const newest = items[0]?.version ?? 1;
        const [before, after] = [Number(search.a ?? Math.max(1, newest - 1)), Number(search.b ?? newest)];
        return (
          <div className="grid">
            <div className="panel scroll-x">
              <table>
                <thead>
                  <tr>
                    <th>Version</th>
                    <th>At</th>
                    <th>By</th>
                    <th>Changes</th>
                    <th className="fit">Before</th>
                    <th className="fit">After</th>
                  </tr>
                </thead>
                <tbody>
                  {items.map((version) => (
                    <tr key={version.version}>
                      <td className="fit">{version.version}</td>
                      <td className="fit">
                        <When at={version.created_at} as="second" />
                      </td>
                      <td className="fit" title={version.created_by}>
                        {person(version.created_by)}
                      </td>
                      <td dir="auto">
                        <span className="clamp">{version.changes.join("; ")}</span>
                      </td>
                      {(["a", "b"] as const).map((side) => (
                        <td key={side} className="fit">
                          <input
                            type="radio"
                            name={side}
                            aria-label={`Version ${version.version} as the ${side === "a" ? "one before" : "one after"}`}
                            checked={version.version === (side === "a" ? before : after)}
                            onChange={() => change({ [side]: String(version.version) }, true)}
                          />
                        </td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            {items.length > 1 && (
              <Diff
                before={items.find((item) => item.version === before)}
                after={items.find((item) => item.version === after)}
              />
            )}
          </div>
        );
      }}
    </Await>
  );
}

function Diff({ before, after }: { before: VersionOfSchedule | undefined; after: VersionOfSchedule | undefined }) {
  if (!before || !after) return null;
  const changed = differences(before.definition, after.definition);
  const lines = lineDiff(JSON.stringify(before.definition, null, 2), JSON.stringify(after.definition, null, 2));
  const side = (mark: "-" | "+") => lines.filter((line) => line.mark === " " || line.mark === mark);
  return (
    <Panel
      title={`Version ${before.version} and version ${after.version}`}
      note={changed.length === 0 ? "the same" : `${changed.length} changed`}
    >
      <div className="body">
        {changed.length > 0 && (
          <dl className="facts changed">
            {changed.map(({ path, before: old, after: fresh }) => (
              <div key={path}>
                <dt>
                  <code>{path}</code>
                </dt>
                <dd>
                  <del>{JSON.stringify(old) ?? "none"}</del> → <ins>{JSON.stringify(fresh) ?? "none"}</ins>
                </dd>
              </div>
            ))}
          </dl>
        )}
        <div className="diff">
          {(["-", "+"] as const).map((mark) => (
            <pre key={mark}>
              {side(mark).map((line, index) => (
                <span key={index} className={line.mark === " " ? "" : mark === "-" ? "gone" : "new"}>
                  {line.text}
                  {"\n"}
                </span>
              ))}
            </pre>
          ))}
        </div>
      </div>
    </Panel>
  );
}
