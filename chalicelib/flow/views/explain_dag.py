"""Explain why a DAG has not run, or what went wrong in its last run (C14)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from chalicelib.core import ids
from chalicelib.core.dags import branches
from chalicelib.core.dags.status import UNDER_WAY
from chalicelib.core.definitions.dag import Dag
from chalicelib.core.ids import dag_start
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.states import Mode
from chalicelib.core.views import At, Sentence, View
from chalicelib.core.why import Mention, Why, joined, mention, plain
from chalicelib.flow import lookup
from chalicelib.flow.dags import runs
from chalicelib.flow.dags.actions import existing
from chalicelib.flow.dags.runs import RunOfDagView
from chalicelib.flow.views import explain, last_failures, refs, stopped
from chalicelib.flow.views.last_failures import LastFailureView
from chalicelib.flow.views.refs import Refs
from chalicelib.ports import Ports

SAID = 3  # nodes of an active run in the sentence


class WhyDagView(View):
    """Why a DAG has not run: its failed nodes, what its active run waits for, the nodes that a result left out in its
    newest run, then why its start waits. ``failures``
    are the nodes that failed in its last run, or with ``by`` in the last one of each partition."""

    dag: str
    state: Mode
    why: Sentence
    next_fire: At | None
    failures: list[LastFailureView]
    refs: Refs


def why_dag(ports: Ports, name: str) -> WhyDagView:
    """Why a DAG has not run. Raises ``not_found`` (404) if it does not exist."""
    row, _ = existing(ports, name)
    newest = runs.page(ports, name, last_failures.MAX_DAG_RUNS, None).items
    failed = last_failures.of_dag(ports, newest, bool(Dag.model_validate(row.document).by))
    start = explain.why_schedule(ports, dag_start(name))
    active = next((run for run in newest if run["state"] == "RUNNING"), None)
    going = _going(active)[:SAID] if active is not None else []
    view = WhyDagView(
        dag=name,
        state=start["state"],
        why=joined(
            [
                *last_failures.said(failed),
                *_said([*going, *_left_out(newest)[:SAID]]),
                *_stopped(ports, name, going),
                start["why"],
            ]
        ),
        next_fire=start["next_fire"],
        failures=failed,
        refs=refs.NONE,
    )
    view["refs"] = refs.of(view, chain([Mention(name, "schedule", dag_start(name))], start["refs"].own))
    return view


def _going(run: RunOfDagView) -> list[tuple[RunOfDagView, str]]:
    """The nodes of an active run, those that have begun first."""
    active = [node for node, state in run["nodes"].items() if state["state"] in UNDER_WAY]
    return [(run, node) for node in sorted(active, key=lambda node: run["nodes"][node]["state"] == "PENDING")]


def _stopped(ports: Ports, name: str, going: Sequence[tuple[RunOfDagView, str]]) -> list[Why]:
    """What waiting nodes need and a stop elsewhere holds, such as by a ``fresh`` constraint."""
    found: dict[Why, None] = {}
    for run, node in going:
        schedule = ids.dag_node(f"{name}{ids.DAG}{run['graph']}", node)
        definition = lookup.definition_of(ports, ports.rows.get(ScheduleState, schedule))
        if run["nodes"][node]["state"] == "WAITING" and definition is not None:
            found |= dict.fromkeys(stopped.upstreams(ports, schedule, definition))
    return list(found)


def _left_out(newest: Sequence[RunOfDagView]) -> list[tuple[RunOfDagView, str]]:
    """The nodes of the newest run that did not run because of a result (W18)."""
    return [
        (run, node) for run in newest[:1] for node, state in run["nodes"].items() if state["code"] in branches.CODES
    ]


def _said(nodes: Sequence[tuple[RunOfDagView, str]]) -> Iterator[Why]:
    """What becomes of these nodes. Each run is named once, before the first of its nodes."""
    known = None
    for run, node in nodes:
        state = run["nodes"][node]
        of_run = () if run["run_id"] == known else ("run ", mention("run", run["run_id"]), ", ")
        yield plain(*of_run, f"node {node} is {state['state'].lower()}: ", state["why"])
        known = run["run_id"]
