import { useQuery } from "@tanstack/react-query";
import { commands } from "../api/commands";
import { namespace } from "../api/queries";
import type { StoredDataset } from "../api/types";
import { useKeys } from "../frame/keys";
import { useGo, useNs } from "../frame/place";
import { number } from "../lib/format";
import { paths } from "../lib/paths";
import { Command, copyCommand } from "../parts/command";
import { Go } from "../parts/go";
import { Await, Empty } from "../parts/panel";
import { type Column, Rows } from "../parts/rows";
import { Freshness } from "../parts/text";

const FRESH: Column<StoredDataset> = {
  id: "fresh",
  width: "150px",
  head: "Fresh",
  cell: (item) => <Freshness of={item} />,
};

export function Datasets() {
  const ns = useNs();
  const go = useGo();
  const query = useQuery(namespace.datasets(ns));
  useKeys({ c: () => void copyCommand(commands.list("datasets", ns)) });
  const columns: Column<StoredDataset>[] = [
    {
      id: "name",
      width: "minmax(160px, 1fr)",
      head: "Name",
      cell: (item) => (
        <Go to={paths.dataset(item.name)} className="name">
          {item.name.split(".").at(-1)}
        </Go>
      ),
    },
    { id: "format", width: "90px", head: "Format", cell: (item) => item.format },
    { id: "keys", width: "minmax(120px, 0.8fr)", head: "Keys", cell: (item) => (item.keys ?? []).join("/") },
    ...(query.data?.items.some((item) => item.freshness) ? [FRESH] : []),
    {
      id: "place",
      width: "minmax(200px, 2fr)",
      head: "Place",
      cell: (item) => (
        <code>
          s3://{item.bucket}/{item.prefix}
        </code>
      ),
    },
    {
      id: "lineage",
      width: "80px",
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
      <Await query={query} rows={8}>
        {({ items }) => (
          <Rows
            label="Datasets"
            rows={items}
            columns={columns}
            rowKey={(item) => item.name}
            onOpen={(item) => go(paths.dataset(item.name))}
            keys={{ c: (item) => void copyCommand(commands.partitions(item.name)) }}
            empty={
              <Empty command="sluice apply app.yaml">
                No datasets. An app document may have them: a bucket, a prefix, and the keys of its partitions.
              </Empty>
            }
          />
        )}
      </Await>
    </div>
  );
}
