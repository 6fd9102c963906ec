export function Dags() { return null; }
