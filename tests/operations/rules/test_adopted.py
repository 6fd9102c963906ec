"""What the name and the context of a run at EMR tell about it, if no table has it (O4)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.dags import rounds
from sluice.operations.rules.adopted import attempt_of, correlation_of, job_of
from tests.support.clock import NOON

RUN = "demo.flights.daily.3.abc"
FIRED = {"id": "t1", "kind": "time", "instant": NOON - 5_000}


@pytest.mark.parametrize(
    ("name", "found"), [(f"{RUN}-2", (RUN, 2)), (f"{RUN}-x", None), (RUN, None), ("nightly-1", None), ("", None)]
)
def test_o4_only_names_that_sluice_gave_are_read(name: str, found: tuple[str, int] | None) -> None:
    assert attempt_of(name) == found


@pytest.mark.parametrize(
    ("attempt", "events", "kind"),
    [(1, [], "gathering"), (1, [FIRED], "fire"), (2, [], "retry"), (2, [FIRED], "retry")],
)
def test_o4_a_run_tells_which_job_it_was(attempt: int, events: list[dict[str, Any]], kind: str) -> None:
    job = job_of(RUN, attempt, NOON, {"events": events})
    assert (job.schedule, job.generation, job.job_id, job.attempt) == ("demo.flights.daily", 3, RUN, attempt)
    assert (job.kind, job.created_at) == (kind, NOON)
    assert (job.due_at, job.accepted_at) == ((FIRED["instant"],) * 2 if events else (None, None))
    assert (job.event.id if job.event else None) == ("t1" if events else None)


@pytest.mark.parametrize(("number", "alone"), [(1, False), (2, True)])
def test_o4_a_later_round_of_a_dag_is_one_alone(number: int, alone: bool) -> None:
    context = {"correlation": {"day": "1"}, "dag": {"node": "clean", "run_id": RUN, "round": number}}
    found = correlation_of(context)
    assert found is not None and found["day"] == "1"
    assert rounds.parse(found[rounds.KEY]) == rounds.Round(RUN, number, alone=alone)


@pytest.mark.parametrize("dag", [None, {"node": None, "run_id": RUN, "round": 1}])
def test_o4_a_run_of_no_node_keeps_its_correlation(dag: dict[str, Any] | None) -> None:
    assert correlation_of({"correlation": {"day": "1"}, "dag": dag}) == {"day": "1"}
