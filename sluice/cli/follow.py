"""Follow work from its job to the end of its run. Job and run have the same id, which serves to request both."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext

from rich.text import Text

from sluice import render, wording
from sluice.cli import frame
from sluice.client import Client, Document, segment
from sluice.errors import ApiRefused

# RETRYING is missing because another attempt follows it.
OVER = ("SUCCEEDED", "FAILED", "CANCELLED", "ABORTED")
FIRST_PAUSE, MAX_PAUSE = 0.25, 3.0  # seconds between two requests; the pause grows
# How many requests must find neither job nor run before the work counts as gone. A lookup may miss a new job, or one
# that is becoming a run, for a moment. If the API explains what happened to the job, two requests suffice.
MISSES, MISSES_WITH_WORD = 8, 2


def until_over(
    client: Client, job_id: str, quiet: bool = False, pause: Callable[[float], None] = time.sleep
) -> Document:
    """The run's view once the run has ended. Raises the API's error if the job ended without becoming a run."""
    console = render.stderr()
    live = not quiet and console.is_terminal
    began, shown, misses, span = time.monotonic(), "", 0, FIRST_PAUSE
    with console.status(_Elapsed(began), spinner="dots") if live else nullcontext():
        while True:
            view, refusal = look(client, job_id)
            misses = 0 if refusal is None else misses + 1
            if refusal is not None and misses >= (MISSES_WITH_WORD if refusal.hint else MISSES):
                raise refusal
            # A job with a run is about to be deleted: the next request finds the run.
            if view is not None and view.get("decision") != "duplicate":
                line = _line(view)
                if line.plain != shown and not quiet:
                    elapsed = wording.duration(time.monotonic() - began)
                    console.print(Text.assemble((f"{elapsed:>8}  ", "dim"), line), soft_wrap=True)
                    shown = line.plain
                if view.get("state") in OVER:
                    return view
            pause(span)
            span = min(MAX_PAUSE, span * 1.3)


def look(client: Client, job_id: str) -> tuple[Document | None, ApiRefused | None]:
    """The run, or else what the job waits for, or else the error that explains why neither exists."""
    run, _ = _found(client, f"/v1/runs/{segment(job_id)}")
    if run is not None:
        return run, None
    return _found(client, f"/v1/jobs/{segment(job_id)}/why")


class _Elapsed:
    """The time since the start, computed for each frame of the spinner."""

    def __init__(self, began: float) -> None:
        self._began = began

    def __rich__(self) -> Text:
        return Text(f"{int(time.monotonic() - self._began)} s  (ctrl-c stops following)", "dim")


def show_end(run: Document) -> None:
    line = Text.assemble(render.state(run.get("state")), "  ")
    line.append(
        f"waited {wording.duration(wording.waited(run))}, took {wording.duration(wording.took(run, frame.now()))}"
    )
    render.stdout().print(line, soft_wrap=True)


def _found(client: Client, path: str) -> tuple[Document | None, ApiRefused | None]:
    try:
        return client.get(path), None
    except ApiRefused as refusal:
        if refusal.code != "not_found":
            raise
        return None, refusal


def _line(view: Document) -> Text:
    """A view in one line: the state, and the reason if there is one."""
    why = str(view.get("why") or view.get("reason") or "")
    attempt = f"attempt {view['attempt']} of {view['attempts']}" if view.get("attempts", 1) > 1 else ""
    details = "  ".join(part for part in (attempt, why) if part)
    return Text.assemble(render.state(view.get("state")), f"  {details}" if details else "")
