"""Sub-batches: one address if the target takes batches, otherwise several calls side by side."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.instants import SECOND
from chalicelib.core.rows.delivery_lease import lease_of, mark
from chalicelib.core.targets.sub_batches import longest_call, split
from chalicelib.core.targets.target import MAX_AWS_CALL
from tests.support import rows

TARGETS: tuple[dict[str, Any], ...] = (
    {"type": "sqs", "queue_url": "a"},
    {"type": "sqs", "queue_url": "b"},
    {"type": "sns", "topic_arn": "t"},
    {"type": "event_bus", "bus": "b"},
    {"type": "http", "url": "https://a.example", "timeout": "2s"},
    {"type": "http", "url": "https://b.example", "timeout": "30s"},
    {"type": "lambda", "function": "f"},
)


@given(st.lists(st.integers(0, len(TARGETS) - 1), max_size=120))
def test_nothing_is_lost_or_reordered_within_an_address(places: list[int]) -> None:
    things = list(enumerate(places))
    parts = list(split(things, lambda thing: TARGETS[thing[1]]))

    assert sorted(thing for part in parts for thing in part) == things
    for place in range(4):
        sent = [number for part in parts for number, found in part if found == place]
        assert sent == sorted(sent)
    for part in parts:
        kinds = {TARGETS[place]["type"] for _, place in part}
        assert len(kinds) == 1
        if kinds <= {"http", "lambda"}:
            assert len(part) <= 16
        else:
            assert len(part) <= 10
            assert len({place for _, place in part}) == 1


def test_a_call_takes_as_long_as_its_target_allows() -> None:
    assert longest_call(TARGETS[4]) == 2 * SECOND
    assert longest_call(TARGETS[5]) == 30 * SECOND
    assert longest_call(TARGETS[0]) == MAX_AWS_CALL


def test_a_lease_covers_its_jobs_only_for_their_next_try() -> None:
    jobs = [rows.job(f"j{number}", due_at=1_000) for number in range(5)]
    lease = lease_of(jobs, 2_000)
    assert lease.covered == {mark(job) for job in jobs}
    assert lease_of(list(reversed(jobs)), 3_000).id == lease.id
    tried = rows.job("j0", due_at=1_000, tries=1)
    assert mark(tried) not in lease.covered
