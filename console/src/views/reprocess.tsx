export function Reprocess() { return null; }
export function OneReprocess() { return null; }
