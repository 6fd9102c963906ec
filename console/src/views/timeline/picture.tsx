import { type MouseEvent, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Fire } from "../../api/types";
import { useZone } from "../../frame/place";
import { useSystemDark, useTheme } from "../../frame/settings";
import { type Bar, mergeBars, pixelOf, ticks } from "../../lib/bars";
import { asWritten, duration, shortName } from "../../lib/format";
import { show } from "../../lib/zone";
import { Go } from "../../parts/go";
import { coloursOf, draw, ROW } from "./draw";
import type { Attempts } from "./load";

export interface Line {
  id: string;
  title: string;
  to: string;
  search?: Record<string, string>;
}

interface PictureProps {
  data: Attempts;
  lines: Line[];
  /** Index of a name in the data -> its line. */
  lineOf: number[];
  fires: Fire[];
  from: number;
  to: number;
  now: number;
  pick: (bar: Bar, index: number) => void;
}

const LABELS = 220;
/** What a label of the axis takes, in pixels: one that would be cut off is left out. */
const LABEL_OF_TICK = 40;

export function TimelinePicture({ data, lines, lineOf, fires, from, to, now, pick }: PictureProps) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState({ width: 800, height: 400 });
  const [top, setTop] = useState(0);
  const [over, setOver] = useState<{ bar: Bar; x: number; y: number } | null>(null);
  const zone = useZone();
  const theme = useTheme();
  const systemDark = useSystemDark();

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() =>
      setSize({ width: Math.max(100, element.clientWidth - LABELS), height: element.clientHeight }),
    );
    watch.observe(element);
    return () => watch.disconnect();
  }, []);

  const span = useMemo(() => ({ from, to, width: size.width }), [from, to, size.width]);
  const marks = useMemo(() => ticks(span), [span]);
  const rows = useMemo(() => {
    const moved = { ...data, row: data.row.map((name) => lineOf[name] ?? 0) };
    const byRow = new Map<number, Bar[]>();
    for (const bar of mergeBars(moved, data.states, span, now)) {
      const row = byRow.get(bar.row);
      if (row) row.push(bar);
      else byRow.set(bar.row, [bar]);
    }
    return byRow;
  }, [data, lineOf, span, now]);
  const expected = useMemo(() => {
    const byRow = new Map<number, number[]>();
    for (const fire of fires) {
      const name = data.names.indexOf(fire.schedule);
      const row = name >= 0 ? lineOf[name] : undefined;
      if (row !== undefined && !fire.skipped) byRow.set(row, [...(byRow.get(row) ?? []), Date.parse(fire.due_at)]);
    }
    return byRow;
  }, [fires, data.names, lineOf]);

  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d", { willReadFrequently: true });
    if (!element || !context) return;
    const frame = requestAnimationFrame(() => {
      const scale = Math.min(2, devicePixelRatio);
      if (element.width !== size.width * scale || element.height !== size.height * scale) {
        element.width = size.width * scale;
        element.height = size.height * scale;
        element.style.width = `${size.width}px`;
        element.style.height = `${size.height}px`;
      }
      draw(
        context,
        { ...size, top, rows, expected, count: lines.length, span, ticks: marks, now, colours: coloursOf(element) },
        scale,
      );
    });
    return () => cancelAnimationFrame(frame);
  }, [size, top, rows, expected, lines.length, span, marks, now, theme, systemDark]);

  const barAt = (event: MouseEvent): Bar | null => {
    const rect = canvas.current?.getBoundingClientRect();
    if (!rect) return null;
    const [x, y] = [event.clientX - rect.left, event.clientY - rect.top + top];
    const near = (rows.get(Math.floor(y / ROW)) ?? []).filter((bar) => x >= bar.x - 2 && x <= bar.x + bar.width + 2);
    return near.find((bar) => bar.look !== "waiting") ?? near[0] ?? null;
  };

  const first = Math.max(0, Math.floor(top / ROW) - 4);
  const shown = lines.slice(first, first + Math.ceil(size.height / ROW) + 8);
  return (
    <div className="timeline">
      <div className="timeline-axis" aria-hidden="true">
        {marks
          .filter((tick) => pixelOf(tick, span) < span.width - LABEL_OF_TICK)
          .map((tick) => (
            <span key={tick} style={{ left: LABELS + pixelOf(tick, span) }}>
              {show(tick, zone, "time") === "00:00" ? show(tick, zone, "day").slice(5) : show(tick, zone, "time")}
            </span>
          ))}
      </div>
      <div
        className="timeline-box"
        ref={box}
        tabIndex={0}
        role="group"
        aria-label="Timeline; the table has the same"
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      >
        <div className="timeline-space" style={{ height: Math.max(lines.length * ROW, 1) }}>
          <ul className="timeline-labels" style={{ width: LABELS, transform: `translateY(${first * ROW}px)` }}>
            {shown.map((line) => (
              <li key={line.id} style={{ height: ROW }}>
                <Go to={line.to} search={line.search} title={asWritten(line.id)}>
                  {line.title}
                </Go>
              </li>
            ))}
          </ul>
          <canvas
            ref={canvas}
            style={{ left: LABELS, top }}
            role="img"
            aria-label={`${data.attempts} attempts in ${lines.length} rows; the table has them as text`}
            onMouseMove={(event) => {
              const bar = barAt(event);
              setOver(bar ? { bar, x: event.clientX, y: event.clientY } : null);
            }}
            onMouseLeave={() => setOver(null)}
            onClick={(event) => {
              const bar = barAt(event);
              if (bar) pick(bar, bar.index);
            }}
          />
        </div>
      </div>
      {over && <Tip data={data} bar={over.bar} x={over.x} y={over.y} zone={zone} />}
    </div>
  );
}

function Tip({ data, bar, x, y, zone }: { data: Attempts; bar: Bar; x: number; y: number; zone: string }) {
  const at = data.at[bar.index] ?? 0;
  const took = data.took[bar.index];
  return (
    <div className="tip" style={{ left: Math.min(x + 14, innerWidth - 300), top: y + 14 }}>
      <strong>{shortName(data.names[data.row[bar.index] ?? 0] ?? "")}</strong>
      <span>
        {data.states[data.state[bar.index] ?? 0]} · waited {duration(data.waited[bar.index])} ·{" "}
        {took === null || took === undefined ? "not over yet" : `took ${duration(took)}`}
      </span>
      <span className="faint">
        {show(at, zone, "second")}
        {bar.count > 1 && ` · one of ${bar.count} here`}
      </span>
    </div>
  );
}
