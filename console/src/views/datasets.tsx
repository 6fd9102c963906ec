export function Datasets() { return null; }
