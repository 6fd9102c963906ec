export function DatasetView() { return null; }
