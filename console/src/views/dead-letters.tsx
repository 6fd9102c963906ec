export function DeadLetters() { return null; }
