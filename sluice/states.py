"""The states of a schedule, and their meaning for its jobs (L3, L4, L10); those of the events of a fire (E2)."""

from __future__ import annotations

# The modes of a pause, the default first.
MODES = {
    "hold": "waiting jobs keep gathering, and launch on resume",
    "drain": "waiting jobs go on; new events are not accepted",
    "backlog": "new jobs are queued, and run on resume",
}
STATES = ("enabled", *MODES, "completed", "disabled")
HOLDS = ("limit", "window", "approval", "data", "clock", "pause", "upstream", "probe", "grant", "condition")  # of jobs
OF_EVENTS = ("WAITING", "SENT", "RETRYING", "FAILED", "DROPPED", "UNKNOWN")  # of a large fire


def meaning(state: str | None) -> str | None:
    """The meaning of a state whose name alone does not explain it; None for any other."""
    if state in MODES:
        return f"paused: {MODES[state]}"
    return "its last fire is over" if state == "completed" else None
