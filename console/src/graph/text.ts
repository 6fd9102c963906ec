// Names in boxes: as many lines as are allowed, and if that is not enough, the end of the name stays.

/** A text in at most `most` lines of a width. What does not fit is left out in the middle: the beginning and the end
 * tell names apart. `measure` says how wide a text is. */
export function linesOf(text: string, width: number, most: number, measure: (text: string) => number): string[] {
  const lines: string[] = [];
  let rest = text;
  while (lines.length < most - 1 && measure(rest) > width) {
    const line = head(rest, width, measure);
    lines.push(line);
    rest = rest.slice(line.length);
  }
  if (measure(rest) <= width) return [...lines, rest];
  // Of the last line, the end of the name.
  const half = most === 1 ? (longest(rest, width * 0.45, measure) ?? "") : "";
  let from = half.length + 1;
  while (from < rest.length && measure(`${half}…${rest.slice(from)}`) > width) from += 1;
  return [...lines, `${half}…${rest.slice(from)}`];
}

/** What of a text stands in a line: up to a point, a slash or a dash if one is near the end, else as much as fits. */
function head(text: string, width: number, measure: (text: string) => number): string {
  const fits = longest(text, width, measure);
  const cut = Math.max(...[".", "/", "-", "_", "~", " "].map((mark) => fits.lastIndexOf(mark))) + 1;
  return cut > fits.length * 0.6 ? fits.slice(0, cut) : fits;
}

function longest(text: string, width: number, measure: (text: string) => number): string {
  let end = text.length;
  while (end > 1 && measure(text.slice(0, end)) > width) end -= 1;
  return text.slice(0, end);
}
