"""The last runs that went wrong: in which attempt, with which error, when, and what to do next (C14).

The newest run of a schedule decides; with ``by`` or ``per`` the newest run of each partition, because a day that has
failed says nothing of the next one. What ran since, or is running, ends a failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from chalicelib.core.dags import rounds
from chalicelib.core.instants import iso
from chalicelib.core.rows.run import Run
from chalicelib.core.states import RunState
from chalicelib.core.targets import registry
from chalicelib.core.views import At, Code, Sentence, View
from chalicelib.core.why import Part, Why, joined, mention, plain
from chalicelib.flow.dags.runs import RunOfDagView
from chalicelib.flow.runs import failures
from chalicelib.ports import Ports

MAX_FAILURES = 10  # of a schedule, in its view
SAID = 3  # of these in its sentence
MAX_LINE = 300  # characters of an error
MAX_DAG_RUNS = 5  # the newest runs of a DAG, among which those that failed are searched
WRONG = ("FAILED", "ABORTED", "CANCELLED")  # states of a node that has not done its work


class LastFailureView(View):
    """A run that has failed, and that no newer one has followed: of a schedule with ``by`` or ``per``, for its
    ``partition``. ``node`` is the node of a DAG that failed, and ``dag_run`` the run of the DAG. ``error`` is one line,
    ``next`` says what to do."""

    run_id: str
    attempt: int
    attempts: int
    state: RunState
    partition: dict[str, str] | None
    node: str | None
    dag_run: str | None
    error: Sentence
    code: Code | None
    at: At | None
    next: str


def of_schedule(ports: Ports, newest: Iterable[Run], by: bool, searches: bool) -> list[LastFailureView]:
    """The failures among the ``newest`` runs of a schedule, newest first. With ``searches``, the log of a run is read
    if its error is only there."""
    failed = [run for run in _deciding(newest, by) if run.state == "FAILED"][:MAX_FAILURES]
    return [_of_run(failures.with_reason(ports, run) if searches else run) for run in failed]


def of_dag(ports: Ports, newest: Iterable[RunOfDagView], by: bool) -> list[LastFailureView]:
    """The nodes that failed in the ``newest`` runs of a DAG, newest first."""
    found: list[LastFailureView] = []
    known: set[Any] = set()
    for run in newest:
        key = tuple(sorted((run["partition"] or {}).items())) if by else ()
        if key not in known and run["state"] in WRONG:
            found += [_of_node(ports, run, node) for node, state in run["nodes"].items() if state["state"] in WRONG]
        known.add(key)
    return found[:MAX_FAILURES]


def said(failed: Sequence[LastFailureView]) -> list[Why]:
    """The first failures in words, and how many more there are."""
    more = f"{len(failed) - SAID} more failed" if len(failed) > SAID else ""
    return [*map(_said, failed[:SAID]), plain(more)]


def _said(failure: LastFailureView) -> Why:
    node = f"node {failure['node']}, " if failure["node"] is not None else ""
    of = f" for {' '.join(f'{key}={value}' for key, value in (failure['partition'] or {}).items())}"
    tries = f" in attempt {failure['attempt']} of {failure['attempts']}" if failure["attempts"] > 1 else ""
    when = f" at {failure['at']}" if failure["at"] is not None else ""
    ended = f"{of if failure['partition'] else ''} {failure['state'].lower()}{when}{tries}"
    text = plain(node, "run ", mention("run", failure["run_id"]), ended)
    return plain(joined([text, failure["error"]], ": "), f" ({failure['next']})")


def _deciding(newest: Iterable[Run], by: bool) -> Iterable[Run]:
    """The newest run of each partition; without ``by`` the newest run."""
    known: set[Any] = set()
    for run in newest:
        key = tuple(sorted((rounds.without(run.correlation) or {}).items())) if by else ()
        if key not in known:
            yield run
        known.add(key)


def _of_run(run: Run, node: str | None = None, dag_run: RunOfDagView | None = None) -> LastFailureView:
    at = run.ended_at if run.ended_at is not None else run.state_at
    return LastFailureView(
        run_id=run.run_id,
        attempt=run.attempt,
        attempts=run.attempts,
        state=run.state,
        partition=rounds.without(run.correlation) if dag_run is None else dag_run["partition"],
        node=node,
        dag_run=dag_run["run_id"] if dag_run is not None else None,
        error=_line(run.reason),
        code=run.reason.code or None,
        at=iso(at) if at is not None else None,
        next=_next(run, node, dag_run),
    )


def _of_node(ports: Ports, run: RunOfDagView, node: str) -> LastFailureView:
    state = run["nodes"][node]
    attempts = ports.runs.attempts(state["run_id"]) if state["run_id"] is not None else ()
    if attempts:
        return _of_run(failures.with_reason(ports, attempts[-1]), node, run)
    return LastFailureView(
        run_id=run["run_id"], attempt=1, attempts=1, state="ABORTED", partition=run["partition"], node=node,
        dag_run=run["run_id"], error=_line(state["why"]), code=state["code"], at=state["ended_at"],
        next=_rerun(run, node),
    )  # fmt: skip


def _next(run: Run, node: str | None, dag_run: RunOfDagView | None) -> str:
    if node is not None and dag_run is not None:
        return _rerun(dag_run, node)
    if not registry.of_run(run).has_lifecycle:
        return f"deliver it again: sluice dead-letters redrive {run.run_id}"
    return f"run it again: sluice runs rerun {run.run_id}"


def _rerun(run: RunOfDagView, node: str) -> str:
    counts = run["nodes"][node].get("elements")
    part = f"'{node}[failed]'" if counts is not None and counts["failed"] else node
    return f"run it again: sluice dags rerun {run['dag']} {run['run_id']} --from {part}"


def _line(reason: Why) -> Why:
    """The first line of an error, cut after so many characters. Its names stay, because a reader may not know each."""
    parts: list[Part] = []
    for part in reason.parts or ("no reason was recorded",):
        whole = part.strip() if isinstance(part, str) and not parts else part
        parts.append(whole.partition("\n")[0][:MAX_LINE] if isinstance(whole, str) else whole)
        if parts[-1] != whole:
            break
    return Why(reason.code, tuple(parts))
