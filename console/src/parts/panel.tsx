import type { UseQueryResult } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { ApiError } from "../api/client";
import { duration } from "../lib/format";
import { Command } from "./command";

/** True once a wait has lasted so many ms: what comes sooner needs no sign. */
function useSlow(waiting: boolean, ms: number): boolean {
  const [slow, setSlow] = useState(false);
  useEffect(() => {
    setSlow(false);
    if (!waiting) return;
    const timer = setTimeout(() => setSlow(true), ms);
    return () => clearTimeout(timer);
  }, [waiting, ms]);
  return slow;
}

/** Rows of fixed height in place of what is read, after 200 ms; after 4 s also a word that it takes long. */
export function Loading({ rows = 3 }: { rows?: number }) {
  const slow = useSlow(true, 200);
  const long = useSlow(true, 4000);
  return (
    <div className="loading" role="status" aria-live="polite">
      {slow && Array.from({ length: rows }, (_, index) => <div key={index} className="bone" />)}
      {slow && (
        <span className={long ? "faint" : "unseen"}>
          {long ? "The API takes longer than usual. Still waiting." : "Loading"}
        </span>
      )}
    </div>
  );
}

/** An error in its own place: what was expected, where, what to do, and another try. */
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  const fault =
    error instanceof ApiError ? error.fault : { code: "error", message: String(error), field: null, hint: null };
  const status = error instanceof ApiError ? error.status : 0;
  return (
    <div className="failure" role="alert">
      <p className="failure-message" dir="auto">
        <span className="glyph" aria-hidden="true">
          ✗
        </span>
        {status === 404 ? "Not here: " : ""}
        {fault.message}
      </p>
      {fault.field && (
        <p>
          <span className="label">field</span> <code>{fault.field}</code>
        </p>
      )}
      {fault.hint && (
        <p dir="auto">
          <span className="label">hint</span> {fault.hint}
        </p>
      )}
      {status === 401 && <Command text="sluice console" />}
      {retry && (
        <button type="button" className="button small" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Nothing to show: what would fill it, and the command. */
export function Empty({ children, command }: { children: ReactNode; command?: string }) {
  return (
    <div className="empty">
      <p>{children}</p>
      {command && <Command text={command} />}
    </div>
  );
}

/** The data of a query, or its loading, or its error. Old data stays while new is read, also when that fails. */
export function Await<T>({
  query,
  rows,
  children,
}: {
  query: UseQueryResult<T, Error>;
  rows?: number;
  children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) {
    return (
      <>
        {query.error && <Stale error={query.error} since={query.dataUpdatedAt} retry={() => query.refetch()} />}
        {children(query.data)}
      </>
    );
  }
  if (query.error) return <Failure error={query.error} retry={() => query.refetch()} />;
  return <Loading rows={rows} />;
}

function Stale({ error, since, retry }: { error: Error; since: number; retry: () => void }) {
  return (
    <div className="stale" role="status">
      <span className="glyph" aria-hidden="true">
        ◷
      </span>
      What you see is {duration(Date.now() - since)} old: {error.message}.{" "}
      <button type="button" className="link" onClick={retry}>
        Try again
      </button>
    </div>
  );
}

/** A part of a page with a heading. */
export function Panel({
  title,
  note,
  tools,
  children,
  className = "",
  id,
}: {
  title: ReactNode;
  note?: ReactNode;
  tools?: ReactNode;
  children: ReactNode;
  className?: string;
  /** For links to this part of a page. */
  id?: string;
}) {
  return (
    <section className={`panel ${className}`} id={id} tabIndex={id ? -1 : undefined}>
      <header>
        <h2>{title}</h2>
        {note && <span className="note">{note}</span>}
        {tools && <span className="tools">{tools}</span>}
      </header>
      {children}
    </section>
  );
}
