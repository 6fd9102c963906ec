// The search of the palette: letters in their order, with what begins a word first.

/** How well a text fits a query: null if it does not, or else a number that is higher for a better fit. */
export function score(text: string, query: string): number | null {
  const [hay, needle] = [text.toLowerCase(), query.toLowerCase().replaceAll(" ", "")];
  if (!needle) return 0;
  const whole = hay.indexOf(needle);
  if (whole >= 0) return 1000 - whole - hay.length / 100 + (startsWord(hay, whole) ? 200 : 0);
  let [points, from] = [0, 0];
  for (const letter of needle) {
    const found = hay.indexOf(letter, from);
    if (found < 0) return null;
    points += startsWord(hay, found) ? 10 : found === from ? 5 : 1;
    from = found + 1;
  }
  return points - hay.length / 100;
}

function startsWord(text: string, index: number): boolean {
  return index === 0 || /[.\-_ /]/.test(text[index - 1] ?? "");
}

/** The items that fit, the best first, at most `limit`. */
export function best<T>(items: readonly T[], text: (item: T) => string, query: string, limit: number): T[] {
  const fitting: { item: T; points: number }[] = [];
  for (const item of items) {
    const points = score(text(item), query);
    if (points !== null) fitting.push({ item, points });
  }
  fitting.sort((a, b) => b.points - a.points);
  return fitting.slice(0, limit).map(({ item }) => item);
}
