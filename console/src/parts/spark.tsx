import { duration } from "../lib/format";

/** The middle value, and others by their share. */
export function percentile(values: readonly number[], share: number): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? null;
}

/** Values in time as bars, the newest at the right, with their middle and their 95th percentile in words. */
export function Spark({ word, values }: { word: string; values: readonly number[] }) {
  if (values.length === 0) return null;
  const [width, height] = [180, 28];
  const shown = values.slice(-45);
  const most = Math.max(...shown, 1);
  const step = width / 45;
  return (
    <figure className="spark">
      <figcaption>
        {word} <strong>p50 {duration(percentile(values, 0.5))}</strong>{" "}
        <span className="faint">p95 {duration(percentile(values, 0.95))}</span>
      </figcaption>
      <svg width={width} height={height} role="img" aria-label={`${word} of the last ${shown.length} runs`}>
        {shown.map((value, index) => {
          const size = Math.max(1, (value / most) * height);
          return <rect key={index} x={index * step} y={height - size} width={step - 1} height={size} rx={1} />;
        })}
      </svg>
    </figure>
  );
}
