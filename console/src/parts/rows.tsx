import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, type ReactNode, useEffect, useRef, useState } from "react";
import { useKeys } from "../frame/keys";

export interface Column<T> {
  id: string;
  head: ReactNode;
  /** A track of the grid, such as `minmax(200px, 2fr)`. */
  width: string;
  cell: (row: T, index: number) => ReactNode;
  /** Numbers stand at the right. */
  end?: boolean;
}

interface RowsProps<T> {
  label: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  rowKey: (row: T) => string;
  height?: number;
  /** Called by `enter` on the current row. */
  onOpen?: (row: T) => void;
  /** More keys, each with the current row: they open something. */
  keys?: Record<string, (row: T) => void>;
  rowClass?: (row: T) => string;
  /** The rows on screen, once scrolling rests. */
  onShown?: (rows: T[]) => void;
  /** Rows take the height of the page, or that of their number. */
  fill?: boolean;
  empty?: ReactNode;
}

/** A table of any length: only the rows on screen are in the page. `j` and `k` move, `enter` opens. */
export function Rows<T>({
  label,
  rows,
  columns,
  rowKey,
  height = 32,
  onOpen,
  keys,
  rowClass,
  onShown,
  fill = true,
  empty,
}: RowsProps<T>) {
  const scroller = useRef<HTMLDivElement>(null);
  const [current, setCurrent] = useState(-1);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: 12,
    initialRect: { width: 0, height: 900 },
  });
  const items = virtual.getVirtualItems();

  const move = (step: number) => {
    if (rows.length === 0) return;
    const next = Math.min(rows.length - 1, Math.max(0, current + step));
    setCurrent(next);
    virtual.scrollToIndex(next, { align: "auto" });
  };
  const row = rows[current];
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    Enter: row && onOpen ? () => onOpen(row) : undefined,
    ...Object.fromEntries(Object.entries(keys ?? {}).map(([key, act]) => [key, row ? () => act(row) : undefined])),
  });

  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? -1];
  useEffect(() => {
    if (!onShown || virtual.isScrolling) return;
    onShown(rows.slice(first, last + 1));
  }, [onShown, rows, first, last, virtual.isScrolling]);

  const tracks = { gridTemplateColumns: columns.map((column) => column.width).join(" ") };
  return (
    <div className={fill ? "rows fill" : "rows"} role="table" aria-label={label} aria-rowcount={rows.length + 1}>
      <div className="row head" role="row" style={tracks}>
        {columns.map((column) => (
          <div key={column.id} role="columnheader" className={column.end ? "cell end" : "cell"}>
            {column.head}
          </div>
        ))}
      </div>
      {rows.length === 0 && empty}
      <div
        className="rows-body"
        ref={scroller}
        role="rowgroup"
        tabIndex={rows.length > 0 ? 0 : undefined}
        style={fill ? undefined : { height: Math.min(rows.length * height, 15 * height) }}
      >
        <div className="rows-space" role="presentation" style={{ height: virtual.getTotalSize() }}>
          {items.map((item) => {
            const shown = rows[item.index];
            if (shown === undefined) return null;
            const style: CSSProperties = { ...tracks, height, transform: `translateY(${item.start}px)` };
            const classes = ["row", item.index === current ? "current" : "", rowClass?.(shown) ?? ""].join(" ").trim();
            return (
              <div
                key={rowKey(shown)}
                role="row"
                aria-rowindex={item.index + 2}
                aria-current={item.index === current ? "true" : undefined}
                className={classes}
                style={style}
                onMouseDown={() => setCurrent(item.index)}
              >
                {columns.map((column) => (
                  <div key={column.id} role="cell" className={column.end ? "cell end" : "cell"}>
                    {column.cell(shown, item.index)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
