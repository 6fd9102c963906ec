import type { PartOfTrigger, StateOfConstraint, UseOfLimit } from "../api/types";
import { useNs } from "../frame/place";
import { withoutNamespace } from "../lib/format";
import { ofRef, paths } from "../lib/paths";
import type { Noun } from "../lib/sentence";
import { Go, RunLink } from "./go";
import { Reason, When } from "./text";

const SHOWN = 5; // missing partitions
const COMBINED: Record<string, string> = { all: "all of", any: "any of", at_least: "at least", within: "within" };

/** A trigger as a tree: each part with what has arrived and what is missing. `at`: the partition that a job is for. */
export function TriggerTree({ node, refs, at }: { node: PartOfTrigger; refs?: Noun[]; at?: string }) {
  return (
    <ul className="tree" aria-label="Trigger">
      <TreePart node={node} refs={refs} at={at} />
    </ul>
  );
}

function TreePart({ node, refs, at }: { node: PartOfTrigger; refs?: Noun[]; at?: string }) {
  const sub = node.children.length > 0;
  const dataset = !node.met && node.type === "partition" ? refs?.find((ref) => isSet(ref, node)) : undefined;
  const named = node.lacks.map((values) => Object.values(values).join("/"));
  const missing = named.length > 0 ? named : at ? [at] : [];
  const more = node.need - node.have - SHOWN;
  return (
    <li>
      <div className="tree-node">
        <span className={`glyph ${node.met ? "ok" : "wait"}`} title={node.met ? "met" : "not met"}>
          {node.met ? "✓" : "…"}
        </span>
        <span className="unseen">{node.met ? "met" : "not met"}</span>
        <span className="tree-text">
          {sub ? (COMBINED[node.type] ?? node.type) : <Reason text={node.text} refs={refs} />}
          {(node.need > 1 || sub) && (
            <span className="faint">
              {" "}
              {node.have.toLocaleString("en-US")} of {node.need.toLocaleString("en-US")}
            </span>
          )}
          {!sub &&
            node.arrived.map((text) => (
              <span key={text} className="sub">
                <Reason text={text} refs={refs} />
              </span>
            ))}
          {dataset && missing.length > 0 && (
            <span className="sub">
              missing:{" "}
              {missing.slice(0, SHOWN).map((values, index) => (
                <span key={values}>
                  {index > 0 && ", "}
                  <Go to={paths.dataset(dataset.name)} search={{ at: values }}>{`partition ${values}`}</Go>
                </span>
              ))}
              {named.length > SHOWN && ` and ${more.toLocaleString("en-US")} more`}
            </span>
          )}
          {node.changes_at && (
            <span className="sub">
              met at <When at={node.changes_at} as="second" /> by time alone
            </span>
          )}
        </span>
      </div>
      {sub && (
        <ul>
          {node.children.map((child, index) => (
            <TreePart key={index} node={child} refs={refs} at={at} />
          ))}
        </ul>
      )}
    </li>
  );
}

const isSet = (ref: Noun, node: PartOfTrigger) => ref.kind === "dataset" && node.text.includes(ref.text);

const OF_CONSTRAINTS = /^(workflow|group|rate):/;

/** Constraints with what they use, and the limits in whose queues a job may stand. */
export function Constraints({
  constraints,
  limits,
  refs,
}: {
  constraints: StateOfConstraint[];
  limits?: UseOfLimit[];
  refs?: Noun[];
}) {
  const ns = useNs();
  // A constraint tells the use of its own limit; of that, only a queue in which the job stands is told besides.
  const beside = limits?.filter((limit) => limit.waits_here || !OF_CONSTRAINTS.test(limit.name));
  if (constraints.length === 0 && !beside?.length)
    return <p className="faint">None: it launches once its trigger is met.</p>;
  return (
    <ul className="constraints">
      {constraints.map((constraint, index) => (
        <li key={index}>
          <span className={`glyph ${constraint.met ? "ok" : "wait"}`}>{constraint.met ? "✓" : "◷"}</span>
          <span className="unseen">{constraint.met ? "met" : "not met"}</span>
          <span>
            <strong>{constraint.type.replaceAll("_", " ")}</strong> <Reason text={constraint.why} refs={refs} />
            {constraint.used !== null &&
              constraint.max !== null &&
              !constraint.why.includes("in use") &&
              `; ${constraint.used} of ${constraint.max} in use`}
            {constraint.until && (
              <span className="faint">
                {" "}
                until <When at={constraint.until} />
              </span>
            )}
            <Holders ids={constraint.held_by} />
          </span>
        </li>
      ))}
      {beside?.map((limit) => {
        const target = ofRef("limit", limit.name);
        const words = withoutNamespace(limit.text, ns);
        return (
          <li key={limit.name}>
            <span className={`glyph ${limit.waits_here ? "wait" : "ok"}`}>{limit.waits_here ? "≡" : "✓"}</span>
            <span className="unseen">{limit.waits_here ? "waits here" : "free"}</span>
            <span>
              <strong>limit</strong> {target ? <Go {...target}>{words}</Go> : words}: {limit.rule}
              {limit.used !== null && `; ${limit.used}${limit.max === null ? "" : ` of ${limit.max}`} in use`}
              {limit.waiting > 0 && <span className="faint">, {limit.waiting} wait</span>}
              <Holders ids={limit.held_by} />
            </span>
          </li>
        );
      })}
    </ul>
  );
}

function Holders({ ids }: { ids: string[] | null | undefined }) {
  if (!ids?.length) return null;
  return (
    <span className="sub">
      in use by{" "}
      {ids.map((id, index) => (
        <span key={id}>
          {index > 0 && ", "}
          <RunLink id={id} />
        </span>
      ))}
    </span>
  );
}
