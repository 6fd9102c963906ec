"""Watch datasets with ``fresh``: notice when one is late and when it no longer is, and tell its subscribers (T29).

Nothing polls: the row of a watch wakes when its dataset becomes late, and a late one when a partition comes. The
conditional write of a change expects the newest partition that was read. So a partition that comes at the same instant
is seen by the check, or wakes the watch after it.
"""

from __future__ import annotations

from chalicelib.core.access.grants import ForeignUse
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.instants import Instant, Millis, duration
from chalicelib.core.notices import freshness
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import NewestPartition
from chalicelib.core.rows.notice import FreshnessWatch, PendingNotice
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.runs import metrics
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.writes import Delete, ExpectNewest, Replace, Write
from chalicelib.flow import grants, lookup
from chalicelib.flow.notices import notices
from chalicelib.log import logger
from chalicelib.ports import MAX_CONFLICTS, MAX_DELAY, Ports, too_many_conflicts

PAGE = 50  # subscriptions whose notices one transaction writes


def arrived(ports: Ports, dataset: str) -> None:
    """Wake the watch of a dataset that is late, because a partition has come. Called after the newest partition is
    stored."""
    for _ in range(MAX_CONFLICTS):
        watch, now = ports.rows.get(FreshnessWatch, dataset), ports.clock.now()
        if watch is None or watch.late_since is None or watch.wake_at is not None:
            return
        if ports.ledger.commit([Replace(freshness.again(watch, now))]) is None:
            ports.hints.send([kinds.ref(FreshnessWatch, dataset)], now, now)
            return
    raise too_many_conflicts(f"the freshness of {dataset}", "the event of its partition will be applied again")


def check(ports: Ports, dataset: str) -> None:
    """Tell the subscribers of a dataset its state, if that has changed, then judge it anew.

    Raises RuntimeError after ``MAX_CONFLICTS`` conflicts in a row."""
    conflicts = 0
    while conflicts < MAX_CONFLICTS:
        watch, now = ports.rows.get(FreshnessWatch, dataset), ports.clock.now()
        if watch is None or watch.wake_at is None or (watch.telling is None and _sleeps(watch, now)):
            return
        row = ports.rows.get(Definition, "dataset", dataset)
        span = Dataset.model_validate(row.document).fresh if row is not None else None
        if span is None:  # a death between a deletion and its end
            ports.ledger.commit([Delete(watch)])
            return
        newest = ports.rows.get(NewestPartition, dataset)
        step = _tell if watch.telling is not None else _judge
        conflicts = 0 if step(ports, watch, duration(span), newest, now) else conflicts + 1
    raise too_many_conflicts(f"the freshness of {dataset}", "the sweep will hint it again")


def _sleeps(watch: FreshnessWatch, now: Instant) -> bool:
    """Whether a check of a watch without notices to write came too early. After a lease of the sweep it did not."""
    return watch.leases == 0 and watch.wake_at is not None and watch.wake_at > now


def _judge(
    ports: Ports, watch: FreshnessWatch, span: Millis, newest: NewestPartition | None, now: Instant
) -> bool:  # fmt: skip
    after = freshness.judged(watch, span, newest, now)
    if ports.ledger.commit([Replace(after), ExpectNewest(watch.dataset, newest)]) is not None:
        return False
    if after.telling is not None:
        logger.info(after.telling, extra={"dataset": watch.dataset, "why": freshness.reason(after, span, newest)})
    if after.telling == freshness.LATE:
        ports.metrics.add(metrics.DATASETS_LATE, 1)
    elif after.wake_at is not None and now < after.wake_at <= now + MAX_DELAY:
        ports.hints.send([kinds.ref(FreshnessWatch, watch.dataset)], after.wake_at, now)
    return True


def _tell(
    ports: Ports, watch: FreshnessWatch, span: Millis, newest: NewestPartition | None, now: Instant
) -> bool:  # fmt: skip
    """Write the notices of a page of subscriptions, and move on. Each schedule has one, however many leaves it has."""
    page = ports.catalog.subscriptions(partition_key(watch.dataset), PAGE, watch.cursor)
    names = list(dict.fromkeys(row.schedule for row in page.items))
    due: list[Write] = []
    for name in names:
        due += _notice(ports, watch, name, freshness.reason(watch, span, newest), now) if name != watch.told else []
    last = names[-1] if names else watch.told
    if ports.ledger.commit([Replace(freshness.told(watch, last, page.cursor, now)), *due]) is not None:
        return False
    notices.hint(ports, due)
    return True


def _notice(ports: Ports, watch: FreshnessWatch, name: str, reason: str, now: Instant) -> list[Write]:
    """The notice of a schedule, if one of its rules, or of its workflow, wants it, and the dataset is granted to it."""
    state = ports.rows.get(ScheduleState, name)
    schedule = lookup.definition_of(ports, state)
    use = ForeignUse("datasets", watch.dataset, name.partition(".")[0])
    if schedule is None or watch.telling is None or (use.owner != use.by and grants.used_of(ports, [use]).missing):
        return []
    rules = notices.rules_of(schedule, lookup.workflow_of(ports, schedule.workflow))
    what, notice_id = watch.telling, freshness.notice_id(watch, name)
    return notices.pending(rules, PendingNotice(schedule.workflow, what, notice_id, name, reason, now, wake_at=now))
