"""The references of an explanation: what it is about, and what its sentences name, so that a console makes links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from chalicelib.core import ids
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.limits import names, permits
from chalicelib.core.limits.permits import PermitRequest
from chalicelib.core.rows.job import Job
from chalicelib.core.triggers import tree
from chalicelib.core.views import View, described_as, shown
from chalicelib.core.why import FOUND, Mention, Sees, Why

# A limit's name begins with its kind. A share of a pool leads to the pool; an EMR application has no page.
_KINDS = {"workflow": "workflow", "rate": "workflow", "group": "group", "pool": "pool"}
_KINDS |= {"policy": "policy", "admission": "policy"}


class RefView(View):
    """A text that the sentences of an answer may have, and what it names. A ``run`` may be a job that still waits."""

    text: str
    kind: Literal["schedule", "workflow", "dataset", "pool", "policy", "group", "backfill", "run"]
    name: str


@dataclass(frozen=True, slots=True)
class _Refs:
    """The names that belong to the definitions of an explanation, and those that only its sentences have."""

    own: tuple[Mention, ...] = ()
    found: tuple[Mention, ...] = ()

    def seen(self, sees: Sees) -> list[RefView]:
        """The references for a reader, the longest text first. Of two with the same text the first counts."""
        by_text: dict[str, Mention] = {}
        for each in (*self.own, *(each for each in self.found if not each.is_hidden(sees))):
            by_text.setdefault(ids.plain_in(each.text), each)
        ordered = sorted(by_text.items(), key=lambda item: (-len(item[0]), item[0]))
        return [shown(RefView, each, text=text) for text, each in ordered]


Refs = Annotated[_Refs, described_as(list[RefView])]
NONE = _Refs()


def of(view: Any, own: Iterable[Mention]) -> Refs:
    """The references of a view: its ``own`` names, and those in the sentences of the view and of all views in it."""
    return _Refs(tuple(own), tuple(each for why in _sentences(view) for each in why.names if each.kind in FOUND))


def _sentences(view: Any) -> Iterator[Why]:
    if isinstance(view, Why):
        yield view
    elif isinstance(view, Mapping | list):
        for each in view.values() if isinstance(view, Mapping) else view:
            yield from _sentences(each)


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
    if kind == "dag":
        yield Mention(names.describe(limit_name), "schedule", ids.dag_start(name))
    elif kind in _KINDS:
        yield Mention(names.describe(limit_name), _KINDS[kind], name.partition(":")[0])
