export function Backfill() { return null; }
