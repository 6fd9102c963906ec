"""Jobs, the events that were applied to them, and limits. Implements `ports.JobTable`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from itertools import islice

from chalicelib.aws.tables import items
from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.core import ids
from chalicelib.core.instants import Instant
from chalicelib.core.rows import delivery_lease, kinds, sort_keys
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.delivery_lease import ClosingCount, DeliveryLease
from chalicelib.core.rows.event import AppliedEvent, Event
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.notice import PendingNotice
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.run import Offer
from chalicelib.core.rows.sort_keys import GATHERING
from chalicelib.ports import Page, every_page


class DynamoJobs:
    def __init__(self, dynamo: Dynamo) -> None:
        self._dynamo = dynamo

    def find(self, job_id: str) -> Job | None:
        parsed = ids.parse_job_id(job_id)
        if parsed is None:
            return None
        gathering = self._dynamo.get(kinds.key(Job, parsed.schedule, parsed.generation, GATHERING), Job)
        if gathering is not None and gathering.job_id == job_id:
            return gathering
        pages = every_page(partial(self.jobs, parsed.schedule, parsed.generation), 500)
        return next((job for page in pages for job in page.items if job.job_id == job_id), None)

    def jobs(
        self, schedule: str, generation: int, limit: int, cursor: str | None, first: str = sort_keys.FIRST_JOB
    ) -> Page[Job]:
        values = {"pk": kinds.key(Job, schedule, generation, "").pk, "first": first}
        return self._dynamo.page(Job, "jobs", "pk = :pk AND sk >= :first", values, limit, cursor)

    def events_of(self, job: str, schedule: str, generation: int, most: int | None = None) -> tuple[Event, ...]:
        values = {"pk": kinds.key(Job, schedule, generation, "").pk, "job": job}
        found = self._dynamo.query_all("jobs", "pk = :pk AND event_job = :job", values, index="events")
        return tuple(items.from_item(AppliedEvent, item).event for item in islice(found, most))

    def applied(self, places: Sequence[tuple[str, int, str]]) -> tuple[AppliedEvent, ...]:
        wanted = [kinds.key(AppliedEvent, *place) for place in dict.fromkeys(places)]
        found = self._dynamo.get_many(wanted)
        return items.rows_of(AppliedEvent, (found[key] for key in wanted if key in found))

    def backfills(self, schedule: str) -> tuple[Backfill, ...]:
        found = self._dynamo.query_all("jobs", "pk = :pk", {"pk": f"BACKFILL#{schedule}"})
        return items.rows_of(Backfill, found)

    def reprocesses(self, namespace: str) -> tuple[Reprocess, ...]:
        found = self._dynamo.query_all("jobs", "pk = :pk", {"pk": f"REPROCESS#{namespace}"})
        return items.rows_of(Reprocess, found)

    def notices(self, workflow: str, limit: int) -> tuple[PendingNotice, ...]:
        values = {"pk": f"NOTICE#{workflow}"}
        return self._dynamo.page(PendingNotice, "jobs", "pk = :pk", values, limit, None).items

    def closings(self, namespaces: Collection[str]) -> dict[str, ClosingCount | None]:
        if len(namespaces) == 1:  # mostly; a get is answered sooner than a batch
            return {name: self._dynamo.get(kinds.key(ClosingCount, name), ClosingCount) for name in namespaces}
        found = self._dynamo.get_many([kinds.key(ClosingCount, name) for name in namespaces])
        counts = {row.namespace: row for row in items.rows_of(ClosingCount, found.values())}
        return {name: counts.get(name) for name in namespaces}

    def delivery_leases(self, due: Instant, singles: Collection[str] | None = None) -> tuple[DeliveryLease, ...]:
        if singles is None:
            found = list(self._dynamo.query_all("jobs", "pk = :pk", {"pk": kinds.key(DeliveryLease, due, "").pk}))
        else:
            first = kinds.key(DeliveryLease, due, delivery_lease.SINGLE)
            values = {"pk": first.pk, "single": first.sk}
            wanted = [kinds.key(DeliveryLease, due, delivery_lease.single_id(mark)) for mark in singles]
            found = list(self._dynamo.query_all("jobs", "pk = :pk AND sk < :single", values))
            found += self._dynamo.get_many(wanted).values() if wanted else ()
        return items.rows_of(DeliveryLease, found)

    def limit_state(self, limit_name: str) -> LimitState:
        return self._dynamo.get(kinds.key(LimitState, limit_name), LimitState) or LimitState(limit_name)

    def limit_states(self, limit_names: Sequence[str]) -> tuple[LimitState, ...]:
        found = self._dynamo.get_many([kinds.key(LimitState, name) for name in dict.fromkeys(limit_names)])
        states = {row.limit_name: row for row in items.rows_of(LimitState, found.values())}
        return tuple(states.get(name) or LimitState(name) for name in dict.fromkeys(limit_names))

    def queue(self, limit_name: str, limit: int, cursor: str | None) -> Page[Waiter]:
        values = {"pk": f"LIMIT#{limit_name}", "sk": "WAIT#"}
        return self._dynamo.page(Waiter, "jobs", "pk = :pk AND begins_with(sk, :sk)", values, limit, cursor)

    def is_queued(self, waiter: Waiter) -> bool:
        return self._dynamo.get(kinds.key_of(waiter), Waiter) == waiter

    def head_of(self, limit_name: str, count: int) -> tuple[Waiter, ...]:
        return self.queue(limit_name, count, None).items

    def offers(self, pool: str, count: int) -> tuple[Offer, ...]:
        return self._dynamo.page(Offer, "jobs", "pk = :pk", {"pk": f"OFFER#{pool}"}, count, None).items
