"""The last log lines of a run (W15): of an EMR driver from the control bucket, of a worker from its report."""

from __future__ import annotations

from typing import Any, NotRequired

from chalicelib.core import states
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import iso
from chalicelib.core.rows.run import Output, Run
from chalicelib.core.states import RunState
from chalicelib.core.targets import registry
from chalicelib.core.targets.target import Log, NoLog, Reported, Uploaded
from chalicelib.core.views import At, View, shown
from chalicelib.flow.lookup import find_run
from chalicelib.ports import Ports

MAX_LINES = 10_000


class LogsView(View):
    """The last lines of each stream of an attempt; without lines, ``why``."""

    run_id: str
    attempt: int
    state: RunState
    streams: dict[str, list[str]]
    why: str | None
    exit_code: NotRequired[int | None]
    reported_at: NotRequired[At | None]


def of_run(ports: Ports, run_id: str, attempt: int | None, lines: int) -> LogsView:
    """The last ``lines`` of each stream of an attempt; None for ``attempt`` is the latest one.

    ``why`` explains why there are no lines yet. Raises ``not_found`` (404) if there is no such attempt.
    """
    attempts = find_run(ports, run_id)
    chosen = next((run for run in attempts if run.attempt == attempt), None) if attempt else attempts[-1]
    if chosen is None:
        known = ", ".join(str(run.attempt) for run in attempts)
        raise SluiceError("not_found", f"expected an attempt of this run, got {attempt}", "attempt", f"it has {known}")
    log = _read(ports, chosen, registry.of_run(chosen).log_of(chosen))
    streams = {name: text.splitlines()[-lines:] for name, text in log["streams"].items()}
    return shown(LogsView, chosen, **log | {"streams": streams})


def _read(ports: Ports, run: Run, log: Log) -> dict[str, Any]:
    match log:
        case NoLog():
            return {"streams": {}, "why": _unless_over(run, log.why, log.never or log.why)}
        case Reported():
            return _reported(ports, run)
        case Uploaded():
            found = {stream: ports.payloads.log(f"{log.folder}/{stream}.gz") for stream in log.streams}
            streams = {stream: text for stream, text in found.items() if text is not None}
            return {"streams": streams, "why": None if streams else log.later}


def _reported(ports: Ports, run: Run) -> dict[str, Any]:
    output = ports.rows.get(Output, run.run_id, run.attempt)
    if output is None:
        later = "its worker has reported no output yet; it reports when the work ends"
        return {"streams": {}, "why": _unless_over(run, later, "its worker reported no output")}
    return {
        "streams": {"output": output.text},
        "exit_code": output.exit_code,
        "reported_at": iso(output.reported_at),
        "why": None,
    }


def _unless_over(run: Run, later: str, never: str) -> str:
    return never if states.is_terminal(run.state) else later
