import { useQuery } from "@tanstack/react-query";
import { namespace } from "../api/queries";
import { useNs } from "../frame/place";
import { paths } from "../lib/paths";
import { Go } from "../parts/go";
import { Await, Empty } from "../parts/panel";

export function Datasets() {
  const ns = useNs();
  const query = useQuery(namespace.datasets(ns));
  return (
    <div className="page">
      <h1>Datasets</h1>
      <section className="panel scroll-x">
        <Await query={query}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty command="sluice apply app.yaml">
                No datasets. An app document may have them: a bucket, a prefix, and the keys of its partitions.
              </Empty>
            ) : (
              <table>
                <thead>
                  <tr>
                    <th>Name</th>
                    <th>Format</th>
                    <th>Keys</th>
                    <th>Place</th>
                    <th />
                  </tr>
                </thead>
                <tbody>
                  {items.map((item) => (
                    <tr key={item.name}>
                      <td>
                        <Go to={paths.dataset(item.name)} className="name">
                          {item.name.split(".").at(-1)}
                        </Go>
                      </td>
                      <td className="fit">{item.format}</td>
                      <td className="fit">{(item.keys ?? []).join("/")}</td>
                      <td>
                        <code>
                          s3://{item.bucket}/{item.prefix}
                        </code>
                      </td>
                      <td className="end">
                        <Go to={paths.view(ns, "graph")} search={{ around: `dataset:${item.name}` }}>
                          Lineage
                        </Go>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )
          }
        </Await>
      </section>
    </div>
  );
}
