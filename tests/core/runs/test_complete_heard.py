"""Which updates of a run count, at which instants, and which schedules hear of its statuses (W12, L21)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core import ids
from chalicelib.core.dags import rounds
from chalicelib.core.instants import SECOND
from chalicelib.core.rows.schedule import WAKE, Subscription
from chalicelib.core.runs import complete
from chalicelib.core.targets.answers import RunUpdate
from tests.core.builders import NAME, NOON, run
from tests.support.reasons import says

NODE, OTHER_NODE = f"demo.flights.days{ids.DAG}a", f"demo.flights.days{ids.DAG}b"
STEP, PLAIN = f"p1{ids.STEP}2", "b1"


def row(schedule: str, leaf: str = "0") -> Subscription:
    return Subscription(f"status:{NAME}:COMPLETED", schedule, 7, 1, leaf, NOON)


OUTSIDE, WAKES, OWN, FOREIGN = (
    row("demo.flights.report"),
    row("demo.flights.report", WAKE),
    row(OTHER_NODE),
    row(f"demo.flights.weeks{ids.DAG}b"),
)
ROWS = [OUTSIDE, WAKES, OWN, FOREIGN]


# -- instants and outdated updates ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "said", "ended"),
    [
        ({}, 5, 5),
        ({"start_requested_at": NOON + 7 * SECOND}, 5, 7),
        ({"started_at": NOON + 8 * SECOND}, 5, 8),
        ({"start_requested_at": NOON + 7 * SECOND, "started_at": NOON + 6 * SECOND}, 5, 7),
        ({"start_requested_at": NOON + SECOND, "started_at": NOON + 2 * SECOND}, 5, 5),
    ],
)
def test_h1_a_run_ends_no_sooner_than_it_was_requested_or_began(fields: dict[str, int], said: int, ended: int) -> None:
    """EMR has a clock of its own, and its events have whole seconds."""
    before = run("RUNNING", **fields)
    done = complete.advance(before, RunUpdate("SUCCEEDED", NOON + said * SECOND), NOON + 9 * SECOND, None)
    assert done is not None
    assert done.run.ended_at == NOON + ended * SECOND


@pytest.mark.parametrize(("target_id", "counts"), [("app/job", False), (None, True)])
def test_w12_what_emr_says_of_an_attempt_with_a_retry_is_late(target_id: str | None, counts: bool) -> None:
    """A user may let EMR continue an attempt. The next attempt has replaced it already."""
    before = run("RETRYING", target_id="app/job", ended_at=NOON)
    said = RunUpdate("FAILED", NOON + SECOND, "said so", target_id)
    assert (complete.advance(before, said, NOON + SECOND, None) is not None) is counts


def test_h4_the_next_attempt_is_of_who_requested_the_run() -> None:
    before = run("RETRYING", requested_by="arn:aws:iam::123456789012:user/ann", number=3)
    again = complete.retry_of(before, says("no memory"), NOON + SECOND)
    assert (again.requested_by, again.number, again.attempt) == (before.requested_by, 3, 2)
    assert again.reason.text == "attempt 1 of 1 failed: no memory"


# -- who hears of a status -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "start", "heard"),
    [
        ({}, None, ROWS),
        ({"backfill": PLAIN}, None, ROWS),
        ({"backfill": STEP}, None, [WAKES]),
        ({"schedule": NODE, "backfill": STEP}, None, [WAKES, OWN]),
        ({"schedule": "demo.flights.days2", "backfill": STEP}, None, [WAKES]),
        ({"schedule": NODE}, {"backfill": STEP}, [WAKES, OWN]),
        ({"schedule": NODE, "backfill": STEP}, {}, ROWS),
        ({"schedule": NODE}, {"backfill": PLAIN}, ROWS),
        ({"schedule": f"demo.flights.weeks{ids.DAG}a", "backfill": STEP}, None, [WAKES, FOREIGN]),
    ],
)
def test_l21_a_step_of_a_reprocessing_starts_only_its_own_dag(
    fields: dict[str, Any], start: dict[str, Any] | None, heard: list[Subscription]
) -> None:
    began = run(**start) if start is not None else None
    assert complete.followers_of(run(**fields), ROWS, began) == heard


def of_round(number: int = 1, alone: bool = False, **fields: Any) -> Any:
    value = str(rounds.Round("demo.flights.days.1.x", number, alone))
    return run(schedule=NODE, correlation={"day": "1", rounds.KEY: value}, **fields)


@pytest.mark.parametrize(
    ("node", "rows", "start"),
    [
        (of_round(), ROWS, "demo.flights.days.1.x"),
        (of_round(), [WAKES, OWN], None),
        (of_round(), [], None),
        (of_round(), [OUTSIDE], "demo.flights.days.1.x"),
        (of_round(number=2), ROWS, None),
        (of_round(alone=True), ROWS, None),
        (of_round(rerun_of="r0"), ROWS, None),
        (run(correlation={"day": "1"}), ROWS, None),
        (run(), ROWS, None),
    ],
)
def test_l21_the_start_of_a_dag_run_is_read_only_if_it_decides(node: Any, rows: list[Any], start: str | None) -> None:
    assert complete.start_of(node, rows) == start
