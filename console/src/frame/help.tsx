import { Sheet } from "../parts/act";
import { VIEWS } from "./frame";

const KEYS: [string, string][] = [
  ["ctrl k", "palette: names, ids, views"],
  ["?", "these keys"],
  ["j", "the next row"],
  ["k", "the row before"],
  ["enter", "open the row"],
  ["x", "choose the schedule; in the queue, cancel the job"],
  ["/", "filter; in a graph, find a node"],
  ["w", "why"],
  ["c", "copy the command of the row or the page"],
  ["r", "run the schedule of the page"],
  ["p", "pause or resume the schedule of the page"],
  ["[", "earlier"],
  ["]", "later"],
  ["+", "a larger graph; - and 0 for smaller and the size of its texts"],
  ["f", "the whole graph"],
  ["z", "the next time zone"],
  ["esc", "close"],
];

export function Help({ close }: { close: () => void }) {
  return (
    <Sheet title="Keys" close={close}>
      <p className="effect">A key opens something. It never acts by itself.</p>
      <div className="keys">
        <dl>
          {KEYS.map(([key, what]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
        <dl>
          {VIEWS.map((view) => (
            <div key={view.name}>
              <dt>
                <kbd>g {view.key}</kbd>
              </dt>
              <dd>{view.name}</dd>
            </div>
          ))}
        </dl>
      </div>
      <footer>
        <button type="button" className="button" onClick={close}>
          Close
        </button>
      </footer>
    </Sheet>
  );
}
