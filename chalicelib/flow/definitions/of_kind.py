"""What a put or a deletion of a definition does besides its row, by the kind of the definition. `store` calls it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from chalicelib.core import errors, ids
from chalicelib.core.constraints.approval import waiters_key
from chalicelib.core.definition_kinds import children
from chalicelib.core.limits.names import admission_limit, policy_limit, workflow_limit
from chalicelib.core.limits.pools import Pool, limits_of
from chalicelib.core.limits.writes import AdvancePace, LeaseQueue, NewEdition
from chalicelib.core.notices import freshness
from chalicelib.core.rows import authors
from chalicelib.core.rows.access import AccessRow, AllowedRow
from chalicelib.core.rows.definition import Definition, Listing
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.notice import FreshnessWatch
from chalicelib.core.rows.ref import limit_ref
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.writes import Create, Delete, PutDefinition, RemoveSubscription, Replace, Write
from chalicelib.flow import wake
from chalicelib.flow.definitions import addresses, buckets, prefixes
from chalicelib.flow.definitions.prefixes import Place
from chalicelib.flow.limits import counting, pools
from chalicelib.flow.limits.policies import advance_pace
from chalicelib.flow.lookup import definitions_in, every, schedules_of
from chalicelib.ports import Kind, Ports

Document = Mapping[str, Any]


class OfKind:
    """The definitions of one kind. What a kind does not override, it does not need."""

    is_referred_to = True  # schedules may name it
    shares_names = False  # a dataset may have the same name
    has_target = False

    def resolved(self, ports: Ports, document: Document) -> Document:
        """The document as it is stored."""
        return document

    def check(self, ports: Ports, name: str, document: Document) -> None:
        """Raise SluiceError for a document that no state of the tables allows."""

    def plan(self, ports: Ports, new: Definition, old: Definition | None) -> tuple[Definition, list[Write]]:
        """The definition to store, and the writes that put it. Raises SluiceError if it may not be put."""
        return new, [_put(new, old)]

    def follow(self, ports: Ports, row: Definition, plan: Sequence[Write]) -> None:
        """What follows from a put. A repeated put, which writes nothing, does what a death has left undone."""

    def queues(self, ports: Ports, row: Definition) -> list[str]:
        """The limits in whose queues jobs wait for it."""
        return []

    def members(self, ports: Ports, name: str) -> list[str]:
        """What keeps it from being deleted, besides schedules that name it."""
        return []

    def released(self, ports: Ports, row: Definition) -> list[Write]:
        """The writes that delete what belongs to it."""
        return []

    def clear(self, ports: Ports, name: str) -> None:
        """Take back what it leaves after its deletion."""


class _Namespace(OfKind):
    is_referred_to = False

    def plan(self, ports: Ports, new: Definition, old: Definition | None) -> tuple[Definition, list[Write]]:
        if old is None:
            self.clear(ports, new.name)  # what a deletion of a former one has left
        return super().plan(ports, new, old)

    def members(self, ports: Ports, name: str) -> list[str]:
        return sorted(member for kind in children("namespace") for member in names_in(ports, kind, name))

    def released(self, ports: Ports, row: Definition) -> list[Write]:
        # By their keys, also if they were put meanwhile.
        return [Delete(kind(row.name, {}, 0, 0, "")) for kind in (AccessRow, AllowedRow, GrantsRow)]

    def clear(self, ports: Ports, name: str) -> None:
        prefixes.take_all(ports, name)


class _App(OfKind):
    is_referred_to = False

    def members(self, ports: Ports, name: str) -> list[str]:
        found = [member for kind in children("app") for member in names_in(ports, kind, name)]
        found += [row.schedule for row in messages_of(ports, name)]
        return sorted([*found, *(each for each in schedules_of(ports, name) if not ids.is_of_dag(each))])


class _Workflow(OfKind):
    has_target = True

    def check(self, ports: Ports, name: str, document: Document) -> None:
        addresses.check_workflow(ports, name.partition(".")[0], document)
        pools.check_workflow(ports, name, document)

    def plan(self, ports: Ports, new: Definition, old: Definition | None) -> tuple[Definition, list[Write]]:
        """A workflow with its next edition, and the writes that put it.

        Its limit gets the edition in the same transaction, so a claim that relies on the former definition fails. The
        limit keeps the last edition of a deleted workflow.
        """
        if old is not None:
            new = replace(new, authors=authors.after(old, old.document, new.document, new.by))
        state = ports.jobs.limit_state(workflow_limit(new.name))
        last = max(state.edition, old.edition if old is not None else 0)
        if old is None and last == 0 and state.active == 0:
            return new, [_put(new, None)]
        pool = new.document.get("pool")
        moved = pool is not None and (state.active > 0 if old is None else pool != old.document.get("pool"))
        new = replace(new, edition=last + 1, uncounted=moved or (old is not None and old.uncounted))
        put = PutDefinition(new, old.version if old is not None else None, before=old)
        return new, [put, NewEdition(state.limit_name, new.edition)]

    def follow(self, ports: Ports, row: Definition, plan: Sequence[Write]) -> None:
        """Count the runs for a new pool, and wake the jobs that wait for an approval: the new definition may ask for
        none any more, or for that of others."""
        if row.uncounted:
            counting.of_workflow(ports, row.name)
        for waiting in every(partial(ports.catalog.subscriptions, waiters_key(row.name))):
            if waiting.since >= row.edition:
                continue  # it waits for the approval that this definition asks for
            state = ports.rows.get(ScheduleState, waiting.schedule)
            if state is not None and state.generation == waiting.generation and state.exists:
                wake.constrained(ports, waiting.schedule, waiting.generation)
            ports.ledger.commit([RemoveSubscription(waiting)])


class _Dataset(OfKind):
    def resolved(self, ports: Ports, document: Document) -> Document:
        """The dataset with the real name of its bucket."""
        return {**document, "bucket": buckets.real_name(ports, document["bucket"])}

    def plan(self, ports: Ports, new: Definition, old: Definition | None) -> tuple[Definition, list[Write]]:
        """The writes also move the dataset to its prefix. Raises ``conflict`` or ``invalid`` for a prefix that it may
        not have."""
        buckets.check(ports, new.name.partition(".")[0], new.document)
        if old is not None:
            check_format(ports, new.name, new.document, old.document)
        place, before = place_of(new.document), place_of(old.document) if old is not None else None
        moved = [] if place == before else prefixes.claimed(ports, new.name, place, before)
        return new, [_put(new, old), *moved, *self._watched(ports, new, old)]

    def released(self, ports: Ports, row: Definition) -> list[Write]:
        watch = [Delete(FreshnessWatch(row.name, 0))] if row.document.get("fresh") else []
        return [*prefixes.released(ports, row.name, place_of(row.document)), *watch]

    def _watched(self, ports: Ports, new: Definition, old: Definition | None) -> list[Write]:
        """The watch of a dataset that is to be fresh; it is checked anew if the span changes (T29)."""
        span, before = new.document.get("fresh"), old.document.get("fresh") if old is not None else None
        if span == before:
            return []
        watch = ports.rows.get(FreshnessWatch, new.name)
        if span is None:
            return [Delete(watch)] if watch is not None else []
        now = ports.clock.now()
        return [Create(freshness.begun(new.name, now))] if watch is None else [Replace(freshness.again(watch, now))]


class _Policy(OfKind):
    shares_names = True

    def plan(self, ports: Ports, new: Definition, old: Definition | None) -> tuple[Definition, list[Write]]:
        return new, [_put(new, old), *(advance_pace(ports, new) if old is not None else [])]

    def follow(self, ports: Ports, row: Definition, plan: Sequence[Write]) -> None:
        for write in plan:
            if isinstance(write, AdvancePace):
                ports.hints.send([limit_ref(write.limit_name)], write.head, ports.clock.now())

    def queues(self, ports: Ports, row: Definition) -> list[str]:
        own = ports.jobs.limit_state(policy_limit(row.name))
        return [own.limit_name, *(admission_limit(row.name, shared) for shared in own.admits)]


class _Pool(OfKind):
    shares_names = True

    def plan(self, ports: Ports, new: Definition, old: Definition | None) -> tuple[Definition, list[Write]]:
        if old is None:
            return super().plan(ports, new, old)
        new, served = pools.serve_again(ports, new, old)
        return new, [_put(new, old), *served]

    def follow(self, ports: Ports, row: Definition, plan: Sequence[Write]) -> None:
        served = [limit_ref(write.limit_name) for write in plan if isinstance(write, LeaseQueue)]
        if served:
            ports.hints.send(served, row.updated_at, row.updated_at)

    def queues(self, ports: Ports, row: Definition) -> list[str]:
        return list(limits_of(row.name, Pool.model_validate(row.document)))

    def members(self, ports: Ports, name: str) -> list[str]:
        return pools.workflows_in(ports, name)


class _Calendar(OfKind):
    shares_names = True


KINDS: Mapping[Kind, OfKind] = {
    "namespace": _Namespace(),
    "app": _App(),
    "workflow": _Workflow(),
    "dataset": _Dataset(),
    "policy": _Policy(),
    "pool": _Pool(),
    "calendar": _Calendar(),
    "dag": OfKind(),
}


def _put(new: Definition, old: Definition | None) -> PutDefinition:
    return PutDefinition(new, old.version if old else None, old.edition if old else None, old)


def place_of(document: Document) -> Place:
    """Where the document of a dataset, with the real name of its bucket, says that the data are."""
    return Place(document["bucket"], document["prefix"])


def check_format(ports: Ports, dataset: str, new: Document, old: Document) -> None:
    """Raise ``invalid`` if the format of a dataset changes: schedules rely on its keys, which depend on the format."""
    before, after = (document.get("format", "files") for document in (old, new))
    if before != after:
        keep = prefixes.to_keep(ports, dataset.partition(".")[0], place_of(old))
        hint = f"{keep}delete the dataset and create it again, or give the new one another name"
        raise errors.invalid("format", f"the format that the dataset has, {before}", after, hint)


def messages_of(ports: Ports, app: str) -> Iterator[Listing]:
    return every(partial(ports.catalog.messages, app))


def names_in(ports: Ports, kind: Kind, parent: str) -> list[str]:
    return [row.name for row in definitions_in(ports, kind, parent)]
