"""Why a run failed, with the error of its program from its log, if the target's reason lacks it."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core.rows.run import Run
from chalicelib.core.targets import registry
from chalicelib.core.targets.logs import Uploaded
from chalicelib.core.why import UNCLEAR, Why
from chalicelib.core.writes import Replace
from chalicelib.ports import Ports


def with_reason(ports: Ports, run: Run) -> Run:
    """The run with the reason of its failure. At the end of the run its row keeps what the target said; the log may
    come later, and has the whole error. It is read for an attempt that failed by itself, and only if its reason names
    no error or was cut. The row then keeps the error, so lists and the history show it and the log is read once."""
    target = registry.of_run(run)
    if run.state not in ("FAILED", "RETRYING") or run.outcome is not None or run.reason.code != UNCLEAR:
        return run
    log = target.log_of(run)
    if not isinstance(log, Uploaded):
        return run
    found = {stream: ports.payloads.log(f"{log.folder}/{stream}.gz") for stream in log.streams}
    streams = {stream: text for stream, text in found.items() if text is not None}
    text = target.reason_with_log(run.reason.text, streams)
    reason = Why.of(UNCLEAR if target.wants_log(text) else "target_failed", text)
    if reason == run.reason:
        return run
    whole = replace(run, reason=reason, rev=run.rev + 1)
    ports.ledger.commit([Replace(whole)])  # after a conflict the next reader stores it
    return whole
