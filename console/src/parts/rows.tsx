import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, memo, type ReactNode, useEffect, useRef, useState } from "react";
import { useKeys } from "../frame/keys";

export interface Column<T> {
  id: string;
  head: ReactNode;
  /** A track of the grid, such as `minmax(200px, 2fr)`. */
  width: string;
  cell: (row: T, index: number) => ReactNode;
  /** Numbers stand at the right. */
  end?: boolean;
  /** How many columns the cell of a row takes, if it is not one: what stands in them goes into this cell. */
  span?: (row: T) => number;
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
  /** What stands in a row instead of its cells, over the whole width: the head of a group. */
  whole?: (row: T) => ReactNode;
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
  whole,
}: RowsProps<T>) {
  const scroller = useRef<HTMLDivElement>(null);
  const [current, setCurrent] = useState(-1);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: 8,
    initialRect: { width: 0, height: 600 },
  });
  const items = virtual.getVirtualItems();

  const move = (step: number) => {
    if (rows.length === 0) return;
    const next = Math.min(rows.length - 1, Math.max(0, current + step));
    setCurrent(next);
    // The focus leaves a button that was clicked before: `enter` is for the row now.
    scroller.current?.focus({ preventScroll: true });
    virtual.scrollToIndex(next, { align: "auto" });
  };
  const row = rows[current];
  useKeys(
    {
      j: () => move(1),
      k: () => move(-1),
      Enter: row && onOpen ? () => onOpen(row) : undefined,
      ...Object.fromEntries(Object.entries(keys ?? {}).map(([key, act]) => [key, row ? () => act(row) : undefined])),
    },
    "row",
  );

  // Without those above and below that are drawn ahead. Until the height is known, nothing is on screen.
  const sized = (virtual.scrollRect?.width ?? 0) > 0;
  const [first, last] = [virtual.range?.startIndex ?? 0, virtual.range?.endIndex ?? -1];
  useEffect(() => {
    if (!onShown || !sized || virtual.isScrolling) return;
    onShown(rows.slice(first, last + 1));
  }, [onShown, rows, first, last, sized, virtual.isScrolling]);

  const tracks = columns.map((column) => column.width).join(" ");
  return (
    <div className={fill ? "rows fill" : "rows"} role="table" aria-label={label} aria-rowcount={rows.length + 1}>
      <div className="row head" role="row" style={{ gridTemplateColumns: tracks }}>
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
            return (
              <RowView
                key={rowKey(shown)}
                row={shown}
                index={item.index}
                top={item.start}
                height={height}
                tracks={tracks}
                columns={columns}
                className={rowClass?.(shown) ?? ""}
                current={item.index === current}
                point={setCurrent}
                whole={whole}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

/** The columns of which a row has cells, without those that a cell before takes. */
function cellsOf<T>(columns: readonly Column<T>[], row: T): { column: Column<T>; span: number }[] {
  const cells: { column: Column<T>; span: number }[] = [];
  let next = 0;
  columns.forEach((column, index) => {
    if (index < next) return;
    const span = column.span?.(row) ?? 1;
    cells.push({ column, span });
    next = index + span;
  });
  return cells;
}

interface RowViewProps<T> {
  row: T;
  index: number;
  top: number;
  height: number;
  tracks: string;
  columns: readonly Column<T>[];
  className: string;
  current: boolean;
  point: (index: number) => void;
  whole: ((row: T) => ReactNode) | undefined;
}

// Scrolling renders the table with each frame, but of the rows only those that come into view.
const RowView = memo(function RowView<T>({
  row,
  index,
  top,
  height,
  tracks,
  columns,
  className,
  current,
  point,
  whole,
}: RowViewProps<T>) {
  const instead = whole?.(row);
  const style: CSSProperties = { gridTemplateColumns: tracks, height, transform: `translateY(${top}px)` };
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      aria-current={current ? "true" : undefined}
      className={["row", current ? "current" : "", className].join(" ").trim()}
      style={style}
      onMouseDown={() => point(index)}
    >
      {instead ? (
        <div role="cell" className="cell whole" aria-colspan={columns.length}>
          {instead}
        </div>
      ) : (
        cellsOf(columns, row).map(({ column, span }) => (
          <div
            key={column.id}
            role="cell"
            aria-colspan={span > 1 ? span : undefined}
            className={column.end && span === 1 ? "cell end" : "cell"}
            style={span > 1 ? { gridColumn: `span ${span}` } : undefined}
          >
            {column.cell(row, index)}
          </div>
        ))
      )}
    </div>
  );
}) as <T>(props: RowViewProps<T>) => ReactNode;
