"""Why a run failed, with the error of its program from its log, if the target's reason lacks it."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core.rows.run import Run
from chalicelib.core.runs import costs
from chalicelib.core.targets import registry
from chalicelib.core.targets.target import Uploaded
from chalicelib.core.why import UNCLEAR, Why
from chalicelib.ports import Ports


def with_reason(ports: Ports, run: Run) -> Run:
    """The run with the reason of its failure. At the end of the run its row keeps what the target said; the log may
    come later, and has the whole error. `complete.check_ended` stores that error, so lists and the history show it.
    Until then, each read of the run reads the log, too."""
    target = registry.of_run(run)
    log = target.log_of(run) if costs.lacks_error(run) else None
    if not isinstance(log, Uploaded):
        return run
    found = {stream: ports.payloads.log(f"{log.folder}/{stream}.gz") for stream in log.streams}
    streams = {stream: text for stream, text in found.items() if text is not None}
    text = target.reason_with_log(run.reason.text, streams)
    return replace(run, reason=Why.of(UNCLEAR if target.wants_log(text) else "target_failed", text))
