"""Which rows of the runs table become lines of the lake, their names, and the days that get late lines (H3)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.history import durations, lines
from chalicelib.core.history.lines import Change, Part
from chalicelib.core.instants import DAY, HOUR, MINUTE, parse_instant
from chalicelib.core.jobs.priority import InheritedPriority
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.runs import sends
from chalicelib.core.states import RUN_MOVES, is_terminal
from chalicelib.core.targets.bills import Prices, Usage, cost_usd
from chalicelib.core.why import HIDDEN, Why
from tests.support import rows
from tests.support.clock import NOON
from tests.support.reasons import says

PRICES = Prices()


def ended(run_id: str = "r1", at: int = NOON, **fields: object) -> Run:
    return rows.run(run_id, **{"state": "SUCCEEDED", "ended_at": at, "wake_at": None, **fields})


def record(job_id: str = "j1", at: int = NOON) -> Record:
    return Record(job_id, "SKIPPED", "demo.flights.clean", 1, says("it was skipped"), at, count=3)


def part(day: str) -> Part:
    return Part(f"history/day={day}/hour=05/x.json.gz", (), ("1",))


@pytest.mark.parametrize("state", RUN_MOVES)
def test_h3_a_run_that_ended_and_announced_all_is_final(state: str) -> None:
    assert lines.is_final(ended(state=state)) is is_terminal(state)
    # It wakes for its bill. The bill is one more revision of the same line.
    assert lines.is_final(ended(state=state, wake_at=NOON)) is is_terminal(state)
    assert not lines.is_final(ended(state=state, wake_at=NOON, announce=("COMPLETED",)))
    assert not lines.is_final(ended(state=state, wake_at=NOON, leases=1)), "a lease says nothing new"
    assert lines.is_final(record())


def test_h3_a_run_that_is_not_final_makes_no_history_line() -> None:
    assert lines.parts([Change("1", rows.run()), Change("2", ended(announce=("FAILED",)))], PRICES) == []


def test_h3_a_run_withdraws_the_record_that_it_replaced() -> None:
    """Also if the record is in the day before, which is compacted by itself."""
    run = ended(at=NOON + HOUR, dropped_at=NOON)
    first, second = lines.parts([Change("1", record("r1")), Change("2", run)], PRICES)
    assert [(line["kind"], line["rev"], line["state"]) for line in first.lines] == [
        ("record", 1, "SKIPPED"), ("record", 2, "WITHDRAWN"),
    ]  # fmt: skip
    assert (first.sequences, second.sequences) == (("1", "2"), ("2",))
    assert {(line["id"], line["attempt"], line["schedule"]) for line in first.lines} == {
        ("r1", 0, "demo.flights.clean")
    }
    assert [line["kind"] for line in second.lines] == ["run"]
    [of_one_hour] = lines.parts([Change("3", ended(dropped_at=NOON))], PRICES)
    assert ([line["kind"] for line in of_one_hour.lines], of_one_hour.sequences) == (["run", "record"], ("3",))


def test_h3_a_history_line_is_in_the_hour_of_its_end() -> None:
    late = ended("r1", NOON - DAY)
    found = lines.parts([Change("1", late), Change("2", ended("r2")), Change("3", record(at=NOON + HOUR))], PRICES)
    assert [part.key.rpartition("/")[0] for part in found] == [
        "history/day=2026-03-01/hour=12",
        "history/day=2026-03-02/hour=12",
        "history/day=2026-03-02/hour=13",
    ]


def test_h3_a_later_revision_of_an_attempt_is_in_the_same_hour() -> None:
    # An attempt whose retry was dropped. It failed when it ended, not when the retry was dropped.
    first = ended(state="RETRYING", state_at=NOON)
    last = replace(first, state="FAILED", rev=9, state_at=NOON + 2 * DAY)
    (one,) = lines.parts([Change("1", first)], PRICES)
    (two,) = lines.parts([Change("2", last)], PRICES)
    assert one.key.rpartition("/")[0] == two.key.rpartition("/")[0]


def test_h3_equal_changes_have_equal_file_names_others_differ() -> None:
    changes = [Change("100", ended("r1")), Change("101", ended("r2"))]
    (once,), (again,), (part_of_it,) = (lines.parts(some, PRICES) for some in (changes, changes, changes[:1]))
    assert once == again
    assert once.key == "history/day=2026-03-02/hour=12/100-101-2.json.gz"
    assert part_of_it.key != once.key


def test_h1_a_history_line_has_what_fired_waits_and_cost() -> None:
    run = ended(
        number=7, accepted_at=NOON - MINUTE, claimed_at=NOON - MINUTE + 5_000, billed=(1_500, 6_000, 0), kind="fire",
        due_at=NOON - MINUTE, start_requested_at=NOON - MINUTE + 6_000, fired_by="waits for a slot of workflow w",
    )  # fmt: skip
    line = lines.line_of(run, PRICES)
    assert (line["number"], line["waited_ms"], line["lateness_ms"]) == (7, 5_000, 6_000)
    assert line["fired_by"] == "waits for a slot of workflow w"
    assert (line["vcpu_hours"], line["memory_gb_hours"], line["storage_gb_hours"]) == (1.5, 6.0, 0.0)
    assert line["cost_usd"] == pytest.approx(1.5 * 0.052624 + 6 * 0.0057785, abs=1e-6)
    assert (line["namespace"], line["app"], line["schedule"]) == ("demo", "demo.flights", "demo.flights.clean")


def test_h1_a_history_line_omits_unknown_fields() -> None:
    line = lines.line_of(ended(), PRICES)
    assert not {"cost_usd", "vcpu_hours", "number", "nominal_at", "reason", "correlation"} & set(line)
    assert None not in line.values()


def test_h1_a_record_line_has_what_never_ran_and_why() -> None:
    line = lines.line_of(record(), PRICES)
    assert (line["kind"], line["state"], line["count"], line["reason"]) == ("record", "SKIPPED", 3, "it was skipped")
    assert "workflow" not in line


def test_h3_history_is_one_json_line_for_any_reason() -> None:
    text = lines.text_of([{"reason": "two\nlines and ü"}, {"n": 1}])
    assert [json.loads(line) for line in text.splitlines()] == [{"reason": "two\nlines and ü"}, {"n": 1}]


@pytest.mark.parametrize(
    ("now", "late"),
    [
        ("2026-03-02T00:59:00Z", []),  # yesterday is not compacted yet
        ("2026-03-02T01:00:00Z", ["history_late/day=2026-03-01/arrived=2026-03-02-01-00/late"]),
        ("2026-03-05T07:34:59Z", ["history_late/day=2026-03-01/arrived=2026-03-05-07-30/late"]),
        ("2026-03-05T07:35:00Z", ["history_late/day=2026-03-01/arrived=2026-03-05-07-35/late"]),
    ],
)
def test_h3_a_day_finished_before_is_announced_once_a_slot(now: str, late: list[str]) -> None:
    found = [part("2026-03-01"), part("2026-03-01"), part(now[:10])]
    assert lines.late_days(found, parse_instant(now)) == late


def test_h1_cost_is_hours_times_list_price() -> None:
    usage = Usage(10, 100, 1_000)
    assert cost_usd(usage, Prices(0.05, 0.006, 0.0001)) == pytest.approx(0.5 + 0.6 + 0.1)
    assert Usage.of(usage.stored()) == usage
    assert Usage.of(()) is None


def test_w5_a_history_line_has_worker_results_and_its_pool() -> None:
    worker = {"type": "worker", "pool": "images", "arguments": [], "heartbeat": "1m"}
    run = ended(
        request=replace(rows.run().request, target=worker), target_id="ann", outcome="timed_out", state="FAILED",
        metrics={"images": 12, "codec": "av1"}, permits=("workflow:demo.flights.w", "pool:demo.cpus:demo.flights.w"),
        units=4, rerun_of="r0",
    )  # fmt: skip
    line = lines.line_of(run, PRICES)
    assert (line["worker_pool"], line["target_id"], line["outcome"]) == ("demo.images", "ann", "timed_out")
    assert (line["pool"], line["units"], line["rerun_of"]) == ("demo.cpus", 4, "r0")
    assert json.loads(line["metrics"]) == {"images": 12, "codec": "av1"}


@pytest.mark.parametrize("result", [{"mode": "full"}, {}, 0, False, ["a"]])
def test_w18_a_history_line_has_the_result_as_json(result: Any) -> None:
    line = lines.line_of(ended(result=result), PRICES)
    assert json.loads(line["result"]) == result and "result_refused" not in line
    refused = lines.line_of(ended(result_refused="too large"), PRICES)
    assert refused["result_refused"] == "too large" and "result" not in refused


DUE = {"start_by": NOON, "end_by": NOON + HOUR}


@pytest.mark.parametrize(
    ("fields", "missed"),
    [
        ({"start_requested_at": NOON, "ended_at": NOON + HOUR}, (False, False)),
        ({"start_requested_at": NOON + 1, "ended_at": NOON + HOUR}, (True, False)),
        ({"start_requested_at": NOON, "ended_at": NOON + HOUR + 1}, (False, True)),
        ({"start_requested_at": NOON, "ended_at": NOON + 9, "state": "FAILED"}, (False, False)),
        ({"start_requested_at": NOON, "ended_at": NOON + HOUR + 1, "state": "CANCELLED"}, (False, True)),
        ({"ended_at": NOON, "state": "ABORTED"}, (False, False)),
        ({"ended_at": NOON + 1, "state": "ABORTED"}, (True, False)),
        ({"start_requested_at": NOON + 1, "ended_at": NOON + HOUR + 1, "state": "RETRYING"}, (True, None)),
        ({"start_requested_at": NOON + 1, "ended_at": NOON + HOUR + 1, "attempt": 2}, (None, True)),
    ],
)
def test_h5_a_start_and_an_end_are_judged_once_for_a_run(fields: dict[str, object], missed: tuple[object, ...]) -> None:
    line = lines.line_of(ended(**DUE, **fields), PRICES)
    assert (line.get("missed_start"), line.get("missed_end")) == missed


@pytest.mark.parametrize(("begun", "missed"), [(NOON, False), (NOON + 1, True), (None, True)])
def test_h5_a_worker_run_begins_when_claimed_not_when_offered(begun: int | None, missed: bool) -> None:
    worker = replace(rows.run().request, target={"type": "worker", "pool": "images", "heartbeat": "1m"})
    answer = {"request": worker, "start_requested_at": NOON - HOUR, "running_seen_at": begun, "ended_at": NOON + 9}
    line = lines.line_of(ended(**DUE, **answer, target_id="ann" if begun else None), PRICES)
    assert line["missed_start"] is missed


def test_h1_a_retry_waits_from_its_due_time_not_from_attempt_one() -> None:
    late = {"accepted_at": NOON - HOUR, "due_at": NOON - 2_000, "claimed_at": NOON}
    assert durations.waited(ended(kind="retry", attempt=2, **late)) == 2_000
    assert durations.waited(ended(kind="fire", **late)) == HOUR


def test_h3_a_history_line_names_no_other_namespace() -> None:
    """The lake does not know who reads it."""
    why = Why.of("limit", "waits for a slot; ", InheritedPriority(9, "other.secret.urgent").why)
    (found,) = lines.parts([Change("1", ended(reason=why, fired_by=why, waited_for=why))], PRICES)
    shown = f"waits for a slot; priority 9, inherited from {HIDDEN}"
    assert [found.lines[0][name] for name in ("reason", "fired_by", "waited_for")] == [shown] * 3


def test_h3_one_line_stands_for_the_sent_events_of_a_bundle() -> None:
    own = {"spread": (250, 1_000), "count": 250, "left": (251,), "plan": (NOON, 0, 0, 1_000, 1_000, 0)}
    late = sends.of([(NOON, NOON + 15)] * 200 + [(NOON, NOON + 900)] * 49)
    run = ended("demo.flights.batch.m1n5.4b2f-6y_6y", kind="fire", due_at=NOON, sends=late, **own)
    line = lines.line_of(run, PRICES)
    assert (line["count"], line["fire"]) == (249, "demo.flights.batch.m1n5.4b2f")
    assert (line["lateness_p50_ms"], line["lateness_ms"]) == (20, 900)
    assert line["lateness_counts"] == {"20": 200, "1000": 49}
    alone = lines.line_of(ended("demo.flights.batch.m1n5.4b2f-6z", kind="fire"), PRICES)
    assert alone["fire"] == "demo.flights.batch.m1n5.4b2f"
    assert not {"count", "lateness_p50_ms", "lateness_counts"} & set(alone)


def test_h3_a_record_that_lost_events_is_a_later_revision() -> None:
    stored = replace(record("r1"), count=9, rev=3)
    assert (lines.line_of(stored, PRICES)["rev"], lines.line_of(stored, PRICES)["count"]) == (3, 9)
    run = ended("r1", count=12, dropped_at=NOON)
    [part] = lines.parts([Change("1", run)], PRICES)
    assert [line["rev"] for line in part.lines if line["kind"] == "record"] == [13]
