export function GraphView() { return null; }
