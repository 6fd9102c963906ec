"""The event that an object becomes, the events that a schedule accepts, and the content of a job that has gathered (T7,
T8, T19).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import unquote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.events import build, partitions
from chalicelib.core.instants import DAY, HOUR, MINUTE
from chalicelib.core.jobs import gather
from chalicelib.core.jobs.gather import Touch
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job, Progress
from chalicelib.core.rows.schedule import Subscription
from chalicelib.core.rows.sort_keys import GATHERING
from tests.core.builders import (
    CLEANED,
    NAME,
    NOON,
    PARTITION,
    all_of,
    at,
    brief,
    dataset,
    partition_event,
    run,
    schedule,
)
from tests.support.reasons import says

DAY_ONE = "raw/flights/year=2013/month=1/day=1/"
values_of_keys = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1, max_size=12)
SINCE_NOON = Subscription("partition:demo.flights", NAME, 7, 1, "0", NOON)


def gathered(job: Job | None, *events: Event, now: int = NOON, leaves: tuple[str, ...] = ("0",), **fields: Any) -> Job:
    touches = [Touch(event, leaves) for event in events]
    grown = gather.gather(job, touches, schedule(**fields), SINCE_NOON, None, now)
    assert grown.dropped is None
    assert grown.job is not None
    return grown.job


# -- which partition an object belongs to --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["part-0.csv", "_SUCCESS", "deep/er/part-0.csv", "a=b.csv"])
def test_t7_an_object_under_all_its_keys_is_in_a_partition(name: str) -> None:
    located = partitions.locate(dataset(), DAY_ONE + name)
    assert located == partitions.Located(("2013", "1", "1"), DAY_ONE, name)


@pytest.mark.parametrize(
    "key",
    [
        "raw/weather/year=2013/month=1/day=1/part-0",  # another prefix
        "raw/flights/part-0",  # beside the partitions
        "raw/flights/year=2013/month=1/part-0",  # too shallow
        "raw/flights/month=1/year=2013/day=1/part-0",  # the keys in another order
        "raw/flights/year=2013/month=1/hour=1/part-0",  # another key
        "raw/flights/2013/1/1/part-0",  # no keys
        "raw/flights/year=/month=1/day=1/part-0",  # no value
        "raw/flights/year=2013/month=1/day=1",  # an object in the place of a folder
        "raw/flights/year=2013/month=1/day=1/",  # the marker of a folder
        "raw/flights/year=2013//month=1/day=1/part-0",  # an empty folder in between
        "raw/flights/Year=2013/month=1/day=1/part-0",
        "",
    ],
)
def test_t7_an_object_outside_the_layout_is_in_no_partition(key: str) -> None:
    assert partitions.locate(dataset(), key) is None


@pytest.mark.parametrize(
    ("sent", "value"),
    [
        ("a+b", "a b"),
        ("a%2Bb", "a+b"),
        ("%C3%BC%20%E2%82%AC", "ü €"),
        ("a%3Db", "a=b"),
        ("100%25", "100%"),
        ("a%23b", "a#b"),
    ],
)
def test_t7_odd_characters_of_a_decoded_key_stay_in_the_value(sent: str, value: str) -> None:
    key = unquote_plus(f"raw/flights/year=2013/month=1/day={sent}/part-0")
    located = partitions.locate(dataset(), key)
    assert located is not None
    assert located.values == ("2013", "1", value)


@given(st.tuples(values_of_keys, values_of_keys, values_of_keys), values_of_keys)
@brief
def test_t7_every_value_without_a_slash_is_found_again(values: tuple[str, str, str], name: str) -> None:
    folder = "raw/flights/year={}/month={}/day={}/".format(*values)
    assert partitions.locate(dataset(), folder + name) == partitions.Located(values, folder, name)


# -- when it is ready ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "ready"),
    [
        ("part-0.csv", True),
        ("deep/part-0.csv", True),
        ("a_b.csv", True),
        ("_SUCCESS", False),
        (".part-0.csv.crc", False),
        ("_temporary/0/part-0.csv", False),
        ("deep/.hidden/part-0.csv", False),
        ("deep/_SUCCESS", False),
        ("_hour=00/part-0.csv", True),
        ("hour=00_$folder$", False),
        ("part-0.csv._COPYING_", False),
    ],
)
def test_t8_without_a_done_flag_first_object_with_data_is_ready(name: str, ready: bool) -> None:
    located = partitions.locate(dataset(), DAY_ONE + name)
    assert located is not None
    assert partitions.makes_ready(dataset(), located) is ready


@pytest.mark.parametrize(
    ("name", "ready"), [("_SUCCESS", True), ("part-0.csv", False), ("deep/_SUCCESS", False), ("_SUCCESS.crc", False)]
)
def test_t8_with_a_done_flag_only_that_object_is_ready(name: str, ready: bool) -> None:
    flagged = dataset(ready={"done_flag": "_SUCCESS"})
    located = partitions.locate(flagged, DAY_ONE + name)
    assert located is not None
    assert partitions.makes_ready(flagged, located) is ready


def test_t7_a_partition_event_is_the_same_for_every_report() -> None:
    once = build.partition_event("demo.flights", dataset(), ("2013", "1", "1"), NOON, NOON)
    again = build.partition_event("demo.flights", dataset(), ("2013", "1", "1"), NOON + HOUR, NOON + DAY)

    assert once.id == again.id
    assert once.key == "partition:demo.flights"
    assert once.partition == {"year": "2013", "month": "1", "day": "1"}
    assert once.path == f"s3://lake/{DAY_ONE}"
    assert (again.instant, again.accepted_at) == (NOON + HOUR, NOON + DAY)


def test_t7_each_partition_of_each_dataset_has_its_own_event() -> None:
    answer = [
        ("demo.flights", ("1", "1", "11")),
        ("demo.flights", ("1", "11", "1")),
        ("demo.weather", ("1", "1", "11")),
    ]
    ids = {build.partition_event(name, dataset(), values, NOON, NOON).id for name, values in answer}
    assert len(ids) == 3


def test_t10_the_event_of_a_status_is_one_per_run_and_status() -> None:
    started = build.status_event(run("RUNNING", started_at=NOON + 1), "STARTED")
    completed = build.status_event(run("SUCCEEDED", started_at=NOON + 1, ended_at=NOON + 9), "COMPLETED")

    assert started.id != completed.id
    assert (started.accepted_at, completed.accepted_at) == (NOON + 1, NOON + 9)
    assert completed.key == f"status:{NAME}:COMPLETED"
    assert (completed.run_id, completed.status) == (f"{NAME}.7.first", "COMPLETED")
    assert build.status_event(run("RUNNING", started_at=NOON + 5), "STARTED").id == started.id


@pytest.mark.parametrize(("accepted", "counts"), [(NOON - 1, False), (NOON, True), (NOON + 1, True)])
def test_l3_an_event_counts_only_if_accepted_since_leaf_gathers(accepted: int, counts: bool) -> None:
    assert gather.counts_for(partition_event(at=accepted), SINCE_NOON) is counts


# -- correlation ---------------------------------------------------------------------------------------------------


def test_t19_an_event_is_gathered_under_its_correlation_values() -> None:
    event = partition_event(year="2013", month="1", day="2")
    assert gather.correlate(("month", "day"), event) == {"month": "1", "day": "2"}
    assert gather.correlate((), event) is None


def test_t19_an_event_without_correlation_key_belongs_to_no_job() -> None:
    assert gather.correlate(("year", "hour"), partition_event(year="2013")) is None
    assert gather.correlate(("year",), replace(partition_event(), partition=None)) is None


def test_t19_without_correlation_schedule_has_one_gathering_job() -> None:
    assert gather.gathering_key(None) == gather.gathering_key({}) == GATHERING


@given(
    st.lists(values_of_keys | st.sampled_from(["%2F", "/", "a/b", "a%2Fb", "#", ""]), min_size=1, max_size=3), st.data()
)
@brief
def test_t19_distinct_values_gather_in_distinct_jobs(values: list[str], data: st.DataObject) -> None:
    same_count = st.lists(st.sampled_from([*values, "/", "%", "%2F", "#", ""]) | values_of_keys, min_size=3, max_size=3)
    others = data.draw(same_count)[: len(values)]
    one, other = ({f"key{index}": value for index, value in enumerate(some)} for some in (values, others))

    same = gather.gathering_key(one) == gather.gathering_key(other)

    assert same == (values == others)
    assert gather.gathering_key(one) != GATHERING


# -- what a job has gathered ---------------------------------------------------------------------------------------


def test_the_first_event_creates_a_job_whose_id_follows_from_it() -> None:
    job = gathered(None, partition_event(), trigger=PARTITION | {"count": 2})

    assert (job.state, job.kind, job.sort_key, job.rev) == ("PENDING_TRIGGER", "gathering", GATHERING, 1)
    assert job.job_id == gathered(None, partition_event(), now=NOON + DAY).job_id
    assert job.job_id != gathered(None, partition_event("e2")).job_id
    assert job.leaves == {"0": Progress(1, NOON, NOON)}
    assert (job.met_at, job.created_at) == (None, NOON)


def test_t7_a_job_gathers_until_its_trigger_is_met_shows_missing() -> None:
    two = PARTITION | {"count": 2}
    first = gathered(None, partition_event("e1"), trigger=two)
    assert first.reason.text.startswith("waits for 1 partition of demo.flights")

    second = gathered(first, at(partition_event("e2"), NOON + MINUTE), now=NOON + HOUR, trigger=two)

    assert second.state == "PENDING_CONSTRAINTS"
    assert (second.met_at, second.accepted_at, second.wake_at) == (NOON + HOUR, NOON + MINUTE, NOON + HOUR)
    assert second.reason.text == "trigger met: 2 partitions of demo.flights came since 2026-03-02T12:00:00.000Z"
    assert (second.rev, second.created_at, second.job_id) == (2, NOON, first.job_id)


def test_t16_one_event_may_count_for_two_leaves_at_once() -> None:
    job = gathered(None, partition_event(), leaves=("0", "1"), trigger=all_of(PARTITION, PARTITION))
    assert job.leaves == {"0": Progress(1, NOON, NOON), "1": Progress(1, NOON, NOON)}
    assert job.met_at == NOON


def test_several_events_at_once_have_the_effect_of_one_by_one() -> None:
    four = PARTITION | {"count": 4}
    events = [at(partition_event(f"e{number}"), NOON + number) for number in range(3)]
    together = gathered(None, *events, trigger=four)
    single = None
    for event in events:
        single = gathered(single, event, trigger=four)
    assert single is not None
    assert replace(single, rev=1) == together


def test_t14_a_half_met_job_waits_for_the_other_leaf() -> None:
    both = all_of(PARTITION, CLEANED)
    half = gathered(None, partition_event(), trigger=both)
    assert (half.state, half.met_at) == ("PENDING_TRIGGER", None)
    whole = gathered(half, partition_event("e2"), leaves=("1",), trigger=both)
    assert whole.met_at == NOON


def test_c10_a_gathering_job_is_checked_when_its_timeout_ends() -> None:
    two = PARTITION | {"count": 3}
    first = gathered(None, partition_event("e1"), trigger=two, timeout={"after": "2h"})
    later = gathered(first, partition_event("e2"), now=NOON + HOUR, trigger=two, timeout={"after": "2h"})
    assert (first.wake_at, later.wake_at) == (NOON + 2 * HOUR, NOON + 2 * HOUR)


def test_c8_a_job_without_a_timeout_is_woken_by_events_alone() -> None:
    assert gathered(None, partition_event(), trigger=PARTITION | {"count": 2}, timeout="never").wake_at is None


def test_c11_events_that_arrive_while_a_met_job_waits_are_added() -> None:
    waiting = replace(
        gathered(None, partition_event("e1")), state="PENDING_LAUNCH", queued_in="line", reason=says("waits")
    )

    more = gathered(waiting, partition_event("e2"), now=NOON + HOUR)

    assert more.leaves["0"].count == 2
    assert more == replace(waiting, leaves=more.leaves, rev=2)


def test_t19_a_job_keeps_its_correlation_values() -> None:
    correlation = {"year": "2013", "day": "1/2"}
    touch = Touch(partition_event(), ("0",))
    job = gather.gather(None, [touch], schedule(by=["year", "day"]), SINCE_NOON, correlation, NOON).job
    assert job is not None
    assert job.correlation == correlation
    assert job.sort_key == "GATHERING#2013/1%2F2"
