"""The last lines that a run has written (W15): an EMR driver's from the control bucket, a worker's as it told."""

from __future__ import annotations

from typing import Any

from chalicelib.core import states
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import iso
from chalicelib.core.rows.run import Run
from chalicelib.core.targets import registry
from chalicelib.core.targets.logs import Log, NoLog, Reported, Uploaded
from chalicelib.flow.lookup import find_run
from chalicelib.ports import Ports

MAX_LINES = 10_000


def of_run(ports: Ports, run_id: str, attempt: int | None, lines: int) -> dict[str, Any]:
    """The last ``lines`` of each stream of an attempt (None: the latest). ``why`` tells why there are none yet."""
    attempts = find_run(ports, run_id)
    chosen = next((run for run in attempts if run.attempt == attempt), None) if attempt else attempts[-1]
    if chosen is None:
        known = ", ".join(str(run.attempt) for run in attempts)
        raise SluiceError("not_found", f"expected an attempt of this run, got {attempt}", "attempt", f"it has {known}")
    told = _read(ports, chosen, registry.of_run(chosen).log_of(chosen))
    streams = {name: _last(text, lines) for name, text in told["streams"].items()}
    return {"run_id": run_id, "attempt": chosen.attempt, "state": chosen.state, **told, "streams": streams}


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
    output = ports.runs.output(run.run_id, run.attempt)
    if output is None:
        later = "its worker has told nothing yet: it does so when the work has ended"
        return {"streams": {}, "why": _unless_over(run, later, "its worker has told nothing of what was written")}
    return {
        "streams": {"output": output.text},
        "exit_code": output.exit_code,
        "reported_at": iso(output.reported_at),
        "why": None,
    }


def _unless_over(run: Run, later: str, never: str) -> str:
    return never if states.is_terminal(run.state) else later


def _last(text: str, lines: int) -> list[str]:
    return text.splitlines()[-lines:]
