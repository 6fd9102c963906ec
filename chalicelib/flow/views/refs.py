"""The references of an explanation: which texts in its sentences name a schedule, a dataset, a limit or a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from chalicelib.core import mentions
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.limits import names, permits
from chalicelib.core.limits.permits import PermitRequest
from chalicelib.core.rows.job import Job
from chalicelib.core.triggers import tree
from chalicelib.core.views import View, shown
from chalicelib.core.why import Mention

# A limit's name begins with its kind. A share of a pool leads to the pool; an EMR application has no page.
_KINDS = {"workflow": "workflow", "rate": "workflow", "group": "group", "pool": "pool"}
_KINDS |= {"policy": "policy", "admission": "policy"}


class RefView(View):
    """A text in the sentences of an answer that names something, so that a console makes it a link. A ``run`` may be a
    job that still waits."""

    text: str
    kind: Literal["schedule", "workflow", "dataset", "pool", "policy", "group", "backfill", "run"]
    name: str


def refs(view: Mapping[str, Any], known: Iterable[Mention]) -> list[RefView]:
    """The references of all sentences in a view, the longest text first."""
    return [shown(RefView, each) for each in mentions.found_in(mentions.sentences(view), known)]


def of_job(job: Job, schedule: Schedule | None, asks: Iterable[PermitRequest]) -> Iterator[Mention]:
    """What the sentences about a job may name."""
    if schedule is not None:
        yield from of_schedule(job.schedule, schedule)
    for ask in permits.with_fallbacks(tuple(asks)):
        yield from of_limit(ask.limit_name)
    if job.queued_in is not None:
        yield from of_limit(job.queued_in)
    if job.backfill is not None:
        yield Mention(f"backfill {job.backfill}", "backfill", job.backfill)
    yield from job.inherited.names


def of_schedule(name: str, schedule: Schedule) -> Iterator[Mention]:
    """What the sentences about a schedule may name. A workflow comes before the schedule of the same name: sentences
    about triggers and constraints name workflows."""
    namespace = name.partition(".")[0]
    for leaf in tree.leaves(schedule.trigger):
        yield from (Mention(each.name, "dataset", each.name) for each in leaf.trigger.datasets())
        yield from (Mention(each.workflow, "workflow", each.workflow) for each in leaf.trigger.upstreams())
    for constraint in schedule.constraints:
        yield from (Mention(each, "workflow", each) for each in constraint.upstreams())
        yield from (Mention(each, "dataset", each) for each in constraint.datasets())
        for group in constraint.groups():
            yield Mention(f"group {group}", "group", f"{namespace}.{group}")
        for use in constraint.references():
            if use.kind == "pool":
                yield Mention(f"pool {use.of}", "pool", str(use.of))
    yield Mention(f"workflow {schedule.workflow}", "workflow", schedule.workflow)
    yield Mention(name, "schedule", name)


def of_limit(limit_name: str) -> Iterator[Mention]:
    """A limit, as sentences write it."""
    kind, _, name = names.whole(limit_name).partition(":")
    if kind in _KINDS:
        yield Mention(names.describe(limit_name), _KINDS[kind], name.partition(":")[0])
