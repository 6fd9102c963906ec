"""Explain why a DAG has not run, or what went wrong in its last run (C14)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice

from chalicelib.core.dags import branches
from chalicelib.core.dags.status import UNDER_WAY
from chalicelib.core.definitions.dag import Dag
from chalicelib.core.ids import dag_start
from chalicelib.core.states import Mode
from chalicelib.core.views import At, Sentence, View
from chalicelib.core.why import Mention, Why, joined, mention, plain
from chalicelib.flow.dags import runs
from chalicelib.flow.dags.actions import existing
from chalicelib.flow.dags.runs import RunOfDagView, StateOfNodeView
from chalicelib.flow.views import explain, last_failures, refs
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
    going = islice(_going(active), SAID) if active is not None else ()
    view = WhyDagView(
        dag=name,
        state=start["state"],
        why=joined([*last_failures.said(failed), *going, *islice(_left_out(newest), SAID), start["why"]]),
        next_fire=start["next_fire"],
        failures=failed,
        refs=refs.NONE,
    )
    view["refs"] = refs.of(view, chain([Mention(name, "schedule", dag_start(name))], start["refs"].own))
    return view


def _going(run: RunOfDagView) -> Iterator[Why]:
    """What the nodes of an active run do, those that have begun first."""
    active = [(node, state) for node, state in run["nodes"].items() if state["state"] in UNDER_WAY]
    for node, state in sorted(active, key=lambda item: item[1]["state"] == "PENDING"):
        yield _is_now(run, node, state)


def _left_out(newest: Sequence[RunOfDagView]) -> Iterator[Why]:
    """The nodes of the newest run that did not run because of a result (W18)."""
    for run in newest[:1]:
        for node, state in run["nodes"].items():
            if state["code"] in branches.CODES:
                yield _is_now(run, node, state)


def _is_now(run: RunOfDagView, node: str, state: StateOfNodeView) -> Why:
    return plain("run ", mention("run", run["run_id"]), f", node {node} is {state['state'].lower()}: ", state["why"])
