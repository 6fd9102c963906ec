"""Sub-batches: one address if the target takes batches, otherwise several calls side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.instants import SECOND
from chalicelib.core.rows.delivery_lease import lease_of, mark
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.sub_batches import first_call, longest_call
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


ROLES = (("demo", None), ("demo", "arn:aws:iam::123456789012:role/a"), ("other", "arn:aws:iam::123456789012:role/a"))
Thing = tuple[int, int, int]


def split(things: Sequence[Thing], run_of: Callable[[Thing], Run]) -> list[list[Thing]]:
    """The calls that are made one after the other."""
    left, calls = list(things), []
    while left:
        calls.append(first_call(left, run_of))
        left = [thing for thing in left if thing not in calls[-1]]
    return calls


def _run(thing: Thing) -> Run:
    _, place, number = thing
    namespace, role = ROLES[number]
    plain = rows.run(workflow=f"{namespace}.app.w", target_role=role)
    return replace(plain, request=replace(plain.request, target=TARGETS[place]))


@given(st.lists(st.tuples(st.integers(0, len(TARGETS) - 1), st.integers(0, len(ROLES) - 1)), max_size=120))
def test_nothing_is_lost_or_reordered_within_an_address(places: list[tuple[int, int]]) -> None:
    things = [(number, place, role) for number, (place, role) in enumerate(places)]
    parts = list(split(things, _run))

    assert sorted(thing for part in parts for thing in part) == things
    for place in range(4):
        for role in range(len(ROLES)):
            sent = [number for part in parts for number, *found in part if found == [place, role]]
            assert sent == sorted(sent)
    for part in parts:
        kinds = {TARGETS[place]["type"] for _, place, _ in part}
        assert len(kinds) == 1
        if kinds <= {"http", "lambda"}:
            assert len(part) <= 16
        else:
            assert len(part) <= 10
            assert len({place for _, place, _ in part}) == 1


@given(st.lists(st.tuples(st.integers(0, len(TARGETS) - 1), st.integers(0, len(ROLES) - 1)), max_size=120))
def test_o10_no_call_mixes_roles_or_namespaces_of_a_role(places: list[tuple[int, int]]) -> None:
    things = [(number, place, role) for number, (place, role) in enumerate(places)]
    for part in split(things, _run):
        assert len({role for _, _, role in part}) == 1


def test_a_call_takes_as_long_as_its_target_allows() -> None:
    assert longest_call(TARGETS[4]) == 2 * SECOND
    assert longest_call(TARGETS[5]) == 30 * SECOND
    assert longest_call(TARGETS[0]) == MAX_AWS_CALL


def test_a_lease_covers_its_jobs_only_for_their_next_try() -> None:
    jobs = [rows.job(f"j{number}", due_at=1_000) for number in range(5)]
    lease = lease_of(jobs, 2_000, "one", 1_000)
    assert lease.covered == {mark(job) for job in jobs}
    assert lease_of(list(reversed(jobs)), 3_000, "two", 1_000).id == lease.id
    tried = rows.job("j0", due_at=1_000, tries=1)
    assert mark(tried) not in lease.covered
