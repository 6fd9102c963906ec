"""The list of waiting jobs, where the jobs of a long queue also have an instant that wakes them, such as a timeout."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chalicelib.core import ids
from chalicelib.core.instants import DAY, iso
from chalicelib.core.limits import permits
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.writes import Put
from tests.support import rows
from tests.support.clock import NOON
from tests.support.world import World
from tests.web.many_schedules import NS, Counting

LIMIT = "workflow:demo.a.w"
QUEUED, TIMELESS = 1_009, 7  # jobs in the queue, and those of them without a timeout: the last ones


@pytest.fixture
def api() -> Iterator[Counting]:
    world = World()
    puts = [Put(Definition("namespace", "demo", {}, 1, NOON))]
    for number in range(QUEUED):
        job_id = f"demo.a.s.{ids.base36(NOON)}.{number:020d}"
        rank = permits.rank(5, None, NOON + number, job_id)
        wake_at = NOON + DAY if number < QUEUED - TIMELESS else None
        job = rows.job(
            job_id, schedule="demo.a.s", generation=NOON, created_at=NOON + number, sort_key=f"JOB#{number:05d}",
            queued_in=LIMIT, rank=rank, state="PENDING_LAUNCH", kind="detached", reason="waits", wake_at=wake_at,
        )  # fmt: skip
        puts += [Put(job), Put(Waiter(LIMIT, rank, "demo.a.s", NOON, job.sort_key, job_id))]
    world.dynamo.put_all(puts)
    limit = {"pk": f"LIMIT#{LIMIT}", "sk": "STATE", "wake_shard": "0", "wake_at": iso(NOON)}
    item = {name: {"S": text} for name, text in limit.items()}
    counts = {"waiters": {"N": str(QUEUED)}, "active": {"N": "1"}, "format": {"N": "3"}}
    world.tables.put_item(TableName="JobsTable", Item=item | counts)
    with pytest.MonkeyPatch.context() as patch:
        yield Counting(world, patch, large=True)


@pytest.mark.parametrize("limit", [100, 500])
def test_queued_jobs_with_a_timeout_are_listed_once(api: Counting, limit: int) -> None:
    found = api.pages(f"{NS}/jobs?limit={limit}")

    listed = [item["job_id"] for page in found for item in page.body["items"]]
    assert len(listed) == len(set(listed)) == QUEUED
    assert max(page.calls for page in found) <= 20


def test_a_page_ends_in_the_middle_of_a_queue(api: Counting) -> None:
    cursor = api.pages(f"{NS}/jobs?limit=500")[1].body["next_cursor"]
    found = []
    while cursor is not None:
        page = api.get(f"{NS}/jobs?limit=3&cursor={cursor}")
        found.append([item["job_id"] for item in page["items"]])
        cursor = page["next_cursor"]

    assert [len(page) for page in found] == [3, 3, 3]
    assert len({job_id for page in found for job_id in page}) == TIMELESS + 2
