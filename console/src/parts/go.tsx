import { useRouter } from "@tanstack/react-router";
import { type AnchorHTMLAttributes, Fragment, type MouseEvent, type ReactNode } from "react";
import type { PartOfDag } from "../api/types";
import { useZoneChoice } from "../frame/place";
import { asWritten, dagOfStart, isOfMessage, shortId, shortName } from "../lib/format";
import { paths } from "../lib/paths";
import { type Search, writeSearch } from "../lib/search";

interface GoProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href"> {
  to: string;
  search?: Search;
  children: ReactNode;
}

/** A link within the console. It keeps the zone, and opens in another tab as every link does. */
export function Go({ to, search, children, onClick, ...rest }: GoProps) {
  const router = useRouter();
  const zone = useZoneChoice();
  const href = to + writeSearch({ ...(zone === "utc" ? {} : { zone }), ...search });
  const go = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    router.history.push(href);
  };
  return (
    <a {...rest} href={href} onClick={go}>
      {children}
    </a>
  );
}

/** The view of a schedule; that of its message or DAG, if it is the schedule of a message or the start of a DAG. */
function addressOf(name: string, tab?: string): { to: string; search?: Search } {
  const dag = dagOfStart(name);
  if (dag) return { to: paths.dag(dag) };
  return isOfMessage(name) ? { to: paths.message(name) } : { to: paths.schedule(name), search: tab ? { tab } : {} };
}

/** A name that may go on in another line after each of its parts. */
const InParts = ({ text }: { text: string }) =>
  text.split(/(?<=[._/-])/).map((part, index) => (
    <Fragment key={index}>
      {index > 0 && <wbr />}
      {part}
    </Fragment>
  ));

interface ScheduleLinkProps {
  name: string;
  tab?: string;
  /** Of the run of an element, its place in the list, which stands behind the name: `load[3]`. */
  element?: number;
  /** Whether a long name takes several lines. */
  breaks?: boolean;
}

/** A link to a schedule. */
export function ScheduleLink({ name, tab, element, breaks = false }: ScheduleLinkProps) {
  return (
    <Go {...addressOf(name, tab)} className="name" title={asWritten(name)}>
      {breaks ? <InParts text={shortName(name)} /> : shortName(name)}
      {element !== undefined && `[${element}]`}
    </Go>
  );
}

export function RunLink({ id, children }: { id: string; children?: ReactNode }) {
  return (
    <Go to={paths.run(id)} className="id" title={id}>
      {children ?? shortId(id)}
    </Go>
  );
}

export function JobLink({ id, children }: { id: string; children?: ReactNode }) {
  return (
    <Go to={paths.job(id)} className="id" title={id}>
      {children ?? shortId(id)}
    </Go>
  );
}

/** Of a job or run of a DAG, the way to its node in the run of the DAG. */
export function PlaceInItsDag({ of }: { of: PartOfDag | null }) {
  if (!of) return null;
  return (
    <Go to={paths.dag(of.name)} search={{ run: of.run_id, node: of.node ?? undefined }}>
      {of.node ? `node ${of.node} of` : "start of"} the DAG {shortName(of.name)}
    </Go>
  );
}
