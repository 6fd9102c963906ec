export function DagView() { return null; }
