"""The states of a schedule, and what each means for its jobs (L3, L4, L10)."""

from __future__ import annotations

# The ways to pause, by their word, the default first.
MODES = {
    "hold": "what waits keeps gathering, and launches on resume",
    "drain": "what waits goes on, and nothing new is taken in",
    "backlog": "new jobs queue up, and run on resume",
}
STATES = ("enabled", *MODES, "completed", "disabled")


def meaning(state: str | None) -> str | None:
    """What a state means, where its word alone does not say it."""
    if state in MODES:
        return f"paused: {MODES[state]}"
    return "its last fire is over" if state == "completed" else None
