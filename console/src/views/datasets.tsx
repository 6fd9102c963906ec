import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { commands } from "../api/commands";
import { namespace } from "../api/queries";
import type { StoredDataset } from "../api/types";
import { useKeys } from "../frame/keys";
import { useGo, useNs, usePlace } from "../frame/place";
import { hasText } from "../lib/filter";
import { number, partition } from "../lib/format";
import { paths } from "../lib/paths";
import type { SearchKey } from "../lib/search";
import { Command, copyCommand } from "../parts/command";
import { ClearFilters, TextFilter } from "../parts/filters";
import { Go } from "../parts/go";
import { Await, Empty } from "../parts/panel";
import { type Column, Rows } from "../parts/rows";
import { Ago, Freshness } from "../parts/text";

const FILTERS: SearchKey[] = ["q", "late"];

const FRESH: Column<StoredDataset> = {
  id: "fresh",
  width: "176px",
  head: "Fresh",
  cell: (item) => <Freshness of={item} />,
};

export function Datasets() {
  const ns = useNs();
  const go = useGo();
  const { search, change } = usePlace();
  const query = useQuery(namespace.datasets(ns));
  const field = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => field.current?.focus(), c: () => void copyCommand(commands.list("datasets", ns)) });
  const fits = (item: StoredDataset) =>
    hasText(search.q, item.name, item.description, `s3://${item.bucket}/${item.prefix}`, item.format) &&
    (search.late !== "yes" || item.freshness?.late === true);
  const columns: Column<StoredDataset>[] = [
    {
      id: "name",
      width: "minmax(160px, 1.6fr)",
      head: "Name",
      cell: (item) => (
        <Go to={paths.dataset(item.name)} className="name">
          {item.name.split(".").at(-1)}
        </Go>
      ),
    },
    { id: "format", width: "64px", head: "Format", cell: (item) => item.format },
    { id: "keys", width: "minmax(96px, 0.6fr)", head: "Keys", cell: (item) => (item.keys ?? []).join("/") },
    { id: "newest", width: "minmax(112px, 0.7fr)", head: "Newest", cell: (item) => <Newest of={item} /> },
    {
      id: "age",
      width: "80px",
      head: "Came",
      cell: (item) => <Ago side="past" at={item.newest?.at} />,
    },
    ...(query.data?.items.some((item) => item.freshness) ? [FRESH] : []),
    {
      id: "place",
      width: "minmax(140px, 1.6fr)",
      head: "Place",
      cell: (item) => (
        <code>
          s3://{item.bucket}/{item.prefix}
        </code>
      ),
    },
    {
      id: "lineage",
      width: "56px",
      head: "",
      end: true,
      cell: (item) => (
        <Go to={paths.view(ns, "graph")} search={{ around: `dataset:${item.name}` }}>
          Lineage
        </Go>
      ),
    },
  ];
  return (
    <div className="page fill">
      <div className="page-head">
        <h1>Datasets</h1>
        <span className="faint">{query.data && number(query.data.items.length, query.data.next_cursor !== null)}</span>
        <span className="space" />
        <Command text={commands.list("datasets", ns)} />
      </div>
      <div className="toolbar">
        <TextFilter of="q" label="Filter" placeholder="part of a name or of a place" grow at={field} />
        <fieldset className="chips">
          <legend className="unseen">Show</legend>
          <button
            type="button"
            aria-pressed={search.late === "yes"}
            onClick={() => change({ late: search.late === "yes" ? undefined : "yes" })}
          >
            late ones
          </button>
        </fieldset>
        <ClearFilters of={FILTERS} />
      </div>
      <Await query={query} rows={8}>
        {({ items }) => (
          <Rows
            label="Datasets"
            rows={items.filter(fits)}
            columns={columns}
            rowKey={(item) => item.name}
            onOpen={(item) => go(paths.dataset(item.name))}
            keys={{ c: (item) => void copyCommand(commands.partitions(item.name)) }}
            empty={
              items.length > 0 ? (
                <Empty>No dataset fits.</Empty>
              ) : (
                <Empty command="sluice apply app.yaml">
                  No datasets. An app document may have them: a bucket, a prefix, and the keys of its partitions.
                </Empty>
              )
            }
          />
        )}
      </Await>
    </div>
  );
}

/** The partition that came last. */
function Newest({ of }: { of: StoredDataset }) {
  if (!of.newest) return <span className="faint">none has come</span>;
  const values = partition(of.newest.partition);
  return (
    <Go to={paths.dataset(of.name)} search={{ at: values }} className="id">
      {values}
    </Go>
  );
}
