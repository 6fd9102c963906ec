"""Put, get and delete all definitions but schedules. A definition that others refer to is not deleted (L17)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, get_args

from chalicelib.core import errors, ids
from chalicelib.core.constraints.approval import waiters_key
from chalicelib.core.errors import SluiceError
from chalicelib.core.limits.names import admission_limit, policy_limit, workflow_limit
from chalicelib.core.limits.pools import Pool, limits_of
from chalicelib.core.limits.writes import LeaseQueue, NewEdition
from chalicelib.core.rows import authors
from chalicelib.core.rows.access import AccessRow, AllowedRow
from chalicelib.core.rows.definition import Definition, Listing
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.ref import limit_ref
from chalicelib.core.rows.schedule import ScheduleState, Version
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.triggers.program_status import Status, status_key
from chalicelib.core.triggers.size import size_key
from chalicelib.core.writes import Delete, PutDefinition, RemoveDefinition, RemoveSubscription, Write
from chalicelib.flow import lookup, priority, wake
from chalicelib.flow.definitions import addresses, buckets, prefixes
from chalicelib.flow.definitions.prefixes import Place
from chalicelib.flow.limits import counting, pools
from chalicelib.flow.limits.policies import advance_pace
from chalicelib.flow.lookup import definitions_in, every, schedules_of
from chalicelib.ports import MAX_CONFLICTS, Kind, Ports

MAX_DOCUMENT = 100_000  # bytes


# Schedules of other namespaces that a deletion reads, since an API request has 29 s. Beyond these, the subscriptions
# still name the enabled schedules that wait for it. If a deletion misses a schedule, its jobs are aborted, with that
# reason.
MAX_ELSEWHERE = 2_000


# Fields of a schedule with the user's own keys, in which a key such as "workflow" may mean anything.
OWN_WORDS = frozenset({"properties", "tags", "pattern", "payload", "data"})


@dataclass(frozen=True, slots=True)
class Change:
    """The result of a put: ``created``, ``replaced`` or ``unchanged``, and the present version."""

    did: str
    version: int


def put(
    ports: Ports, kind: Kind, name: str, document: Mapping[str, Any], by: str, if_match: int | None = None
) -> Change:
    """Create or replace a definition. An identical document changes nothing. The last write wins, unless ``if_match``
    is given: then a put of another version raises ``changed_meanwhile``."""
    if kind == "dataset":
        document = resolve_bucket(ports, document)
    check_size(document)
    if kind == "workflow":
        addresses.check_workflow(ports, name.partition(".")[0], document)
        pools.check_workflow(ports, name, document)
    for _ in range(MAX_CONFLICTS):
        old = ports.rows.get(Definition, kind, name)
        if if_match is not None and if_match != (old.version if old else None):
            raise errors.changed_meanwhile(f"{kind} {name}")
        if old is not None and dict(old.document) == dict(document):
            if old.uncounted:
                counting.of_workflow(ports, old)
            if kind == "workflow":
                _wake_waiting(ports, old)
            return Change("unchanged", old.version)
        if kind == "namespace" and old is None:
            prefixes.take_all(ports, name)  # what a deletion of a former one has left
        if kind == "dataset":
            buckets.check(ports, name.partition(".")[0], document)
        new = Definition(kind, name, document, old.version + 1 if old else 1, ports.clock.now(), by)
        if old is not None:
            written = authors.after(old, old.document, document, by) if kind == "workflow" else {}
            new = replace(new, counted=old.counted, edition=old.edition, authors=written, unknown=old.unknown)
        served: list[LeaseQueue] = []
        if kind == "pool" and old is not None:
            new, served = pools.serve_again(ports, new, old)
        plan: list[Write] = [PutDefinition(new, old.version if old else None, old.edition if old else None, old)]
        if kind == "dataset":
            plan += _prefix_plan(ports, new, old)
        if kind == "workflow":
            new, plan = _next_edition(ports, new, old)
        quicker = advance_pace(ports, new) if kind == "policy" and old is not None else []
        if ports.ledger.commit([*plan, *quicker, *served]) is None:
            for write in quicker:
                ports.hints.send([limit_ref(write.limit_name)], write.head, ports.clock.now())
            if served:
                ports.hints.send([limit_ref(lease.limit_name) for lease in served], new.updated_at, new.updated_at)
            if new.uncounted:
                counting.of_workflow(ports, new)
            if kind == "workflow":
                _wake_waiting(ports, new)
            if old is not None and old.document.get("aging") != new.document.get("aging"):
                priority.rank_all(ports, _queues_of(ports, new))
            return Change("replaced" if old else "created", new.version)
    raise errors.changed_meanwhile(f"{kind} {name}")


def _queues_of(ports: Ports, row: Definition) -> list[str]:
    """The limits in whose queues jobs wait for a pool or a policy."""
    if row.kind == "pool":
        return list(limits_of(row.name, Pool.model_validate(row.document)))
    own = ports.jobs.limit_state(policy_limit(row.name))
    return [own.limit_name, *(admission_limit(row.name, shared) for shared in own.admits)]


def _wake_waiting(ports: Ports, row: Definition) -> None:
    """Wake the jobs that wait for an approval of a workflow whose definition has changed. It may ask for none any more,
    or for that of others. A repeat of the request does what a death has left undone."""
    for waiting in lookup.every(partial(ports.catalog.subscriptions, waiters_key(row.name))):
        if waiting.since >= row.edition:
            continue  # it waits for the approval that this definition asks for
        state = ports.rows.get(ScheduleState, waiting.schedule)
        if state is not None and state.generation == waiting.generation and state.exists:
            wake.constrained(ports, waiting.schedule, waiting.generation)
        ports.ledger.commit([RemoveSubscription(waiting)])


def _next_edition(ports: Ports, new: Definition, old: Definition | None) -> tuple[Definition, list[Write]]:
    """A workflow with its next edition, and the writes that put it.

    Its limit gets the edition in the same transaction, so a claim that relies on the former definition fails. The limit
    keeps the last edition of a deleted workflow.
    """
    state = ports.jobs.limit_state(workflow_limit(new.name))
    last = max(state.edition, old.edition if old is not None else 0)
    if old is None and last == 0 and state.active == 0:
        return new, [PutDefinition(new, None)]
    pool = new.document.get("pool")
    moved = pool is not None and (state.active > 0 if old is None else pool != old.document.get("pool"))
    new = replace(new, edition=last + 1, uncounted=moved or (old is not None and old.uncounted))
    return new, [
        PutDefinition(new, old.version if old is not None else None, before=old),
        NewEdition(state.limit_name, new.edition),
    ]


def check_size(document: Mapping[str, Any]) -> None:
    """Raise ``too_large`` for a document above ``MAX_DOCUMENT``. A DynamoDB row holds 400 KB, and that of a run has the
    properties of workflow, schedule and request."""
    size = len(json.dumps(document).encode())
    if size > MAX_DOCUMENT:
        hint = "put large data into S3 and pass a reference"
        raise SluiceError("too_large", f"expected a document of at most {MAX_DOCUMENT} bytes, got {size}", None, hint)


def get(ports: Ports, kind: Kind, name: str) -> Definition:
    """A definition. Raises ``not_found`` (404) if it does not exist."""
    found = ports.rows.get(Definition, kind, name)
    if found is None:
        raise lookup.missing(ports, kind, name)
    return found


def delete(ports: Ports, kind: Kind, name: str, if_match: int | None = None) -> None:
    """Delete a definition that nothing refers to (L17). Raises ``in_use`` with the referrers otherwise.

    A definition that is replaced during the search for referrers is not deleted.
    """
    if kind == "namespace":
        prefixes.take_all(ports, name)  # what a deletion that died has left
    found = get(ports, kind, name)
    if if_match is not None and if_match != found.version:
        raise errors.changed_meanwhile(f"{kind} {name}")
    word = as_named(kind, name)
    left = _children(ports, kind, name) if kind in ("namespace", "app") else referrers(ports, [word]).get(word, [])
    left += pools.workflows_in(ports, name) if kind == "pool" else []
    if left:
        raise in_use(kind, "one", left, "delete or change these first")
    remove(ports, found)
    if kind == "namespace":
        prefixes.take_all(ports, name)


def remove(ports: Ports, row: Definition) -> None:
    """Delete a definition in the version that was read, without a check of its referrers. Raises ``changed_meanwhile``
    if it was replaced since."""
    for _ in range(MAX_CONFLICTS):
        plan: list[Write] = [RemoveDefinition(row)]
        if row.kind == "dataset":
            plan += prefixes.released(ports, row.name, place_of(row.document))
        if row.kind == "namespace":
            # By their keys, also if they were put meanwhile.
            plan += [Delete(kind(row.name, {}, 0, 0, "")) for kind in (AccessRow, AllowedRow, GrantsRow)]
        if ports.ledger.commit(plan) is None:
            return
        present = ports.rows.get(Definition, row.kind, row.name)
        if present is None:
            return
        if present.version != row.version:
            break
    raise errors.changed_meanwhile(f"{row.kind} {row.name}")


def in_use(kind: str, got: str, left: Sequence[str], hint: str) -> SluiceError:
    """The error for the deletion of ``got``, with the referrers ``left`` that still use it."""
    listed = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
    article = "an" if kind == "app" else "a"
    message = f"expected {article} {kind} that nothing refers to, got {got} used by {listed}"
    return SluiceError("in_use", message, None, hint, mentions=[each.rpartition(" ")[2] for each in left[:5]])


def resolve_bucket(ports: Ports, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The dataset with the real name of its bucket."""
    return {**document, "bucket": buckets.real_name(ports, document["bucket"])}


def place_of(document: Mapping[str, Any]) -> Place:
    """Where the document of a dataset, with the real name of its bucket, says that the data are."""
    return Place(document["bucket"], document["prefix"])


def _prefix_plan(ports: Ports, new: Definition, old: Definition | None) -> list[Write]:
    """The writes that move a dataset to its prefix. Raises ``conflict`` or ``invalid`` for a prefix that it may not
    have."""
    if old is not None:
        check_format(ports, new.name, new.document, old.document)
    place, before = place_of(new.document), place_of(old.document) if old is not None else None
    return [] if place == before else prefixes.claimed(ports, new.name, place, before)


def check_format(ports: Ports, dataset: str, new: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Raise ``invalid`` if the format of a dataset changes: schedules rely on its keys, which depend on the format."""
    before, after = (document.get("format", "files") for document in (old, new))
    if before != after:
        keep = prefixes.to_keep(ports, dataset.partition(".")[0], place_of(old))
        hint = f"{keep}delete the dataset and create it again, or give the new one another name"
        raise errors.invalid("format", f"the format that the dataset has, {before}", after, hint)


def referrers(
    ports: Ports, names: Collection[str], but: Collection[str] = (), elsewhere: int = MAX_ELSEWHERE
) -> dict[str, list[str]]:
    """The referrers of workflows, datasets and policies, as ``schedule <full name>``, by the name that they refer to.

    ``but`` are schedules to leave out, and apps whose messages to leave out. ``elsewhere`` bounds how many schedules of
    other namespaces are read. Only requests of admins read so many schedules.
    """
    found: dict[str, list[str]] = {}
    for schedule in sorted(set(_candidates(ports, names, elsewhere)) - set(but)):
        schedule_state = ports.rows.get(ScheduleState, schedule)
        lives = schedule_state is not None and schedule_state.exists
        version = (
            ports.rows.get(Version, schedule, schedule_state.version) if schedule_state is not None and lives else None
        )
        for name in named(version.definition) & set(names) if version else ():
            if ids.is_of_dag(schedule) and version and version.definition.get("ttl") is not None:
                continue  # a node of a former graph of the DAG
            referrer = f"dag {ids.dag_of(schedule)}" if ids.is_of_dag(schedule) else f"schedule {schedule}"
            if referrer not in found.setdefault(name, []):
                found[name].append(referrer)
    spaces = {name.partition(".")[0] for name in names if name.count(".") == 2}
    for app in {app for space in spaces for app in _names(ports, "app", space)} - set(but):
        # A message names a workflow of its own namespace, and its listing row holds that name.
        for row in messages_of(ports, app):
            if row.workflow in names:
                found.setdefault(row.workflow, []).append(f"message {row.schedule.replace(f'.{ids.MESSAGE}', '.')}")
    return found


def as_named(kind: Kind, name: str) -> str:
    """A definition as `named` returns it, with the kind where a dataset may have the same name."""
    return f"{kind} {name}" if kind in ("policy", "pool", "calendar") else name


def named(document: Any) -> frozenset[str]:
    """The workflows, datasets, policies, pools and calendars that a schedule names in any field."""
    if isinstance(document, list | tuple):
        return frozenset(name for part in document for name in named(part))
    if not isinstance(document, Mapping):
        return frozenset()
    found: set[str] = set()
    for key, value in document.items():
        if key in ("workflow", "dataset") and isinstance(value, str):
            found.add(value)
        elif key in ("policy", "pool", "calendar") and isinstance(value, str):
            found.add(as_named(key, value))
        elif key == "workflows" and isinstance(value, list | tuple):
            found.update(value)
        elif key not in OWN_WORDS:
            found |= named(value)
    return frozenset(found)


def _candidates(ports: Ports, names: Collection[str], elsewhere: int) -> Iterator[str]:
    """Schedules that may refer to these names: all of the same namespaces, ``elsewhere`` of others, and all with a
    subscription to their events."""
    own = {name.rpartition(" ")[2].partition(".")[0] for name in names}
    others = [namespace for namespace in _names(ports, "namespace", "") if namespace not in own] if own else []
    yield from (schedule for namespace in own for schedule in _schedules_in(ports, namespace))
    yield from islice((each for namespace in others for each in _schedules_in(ports, namespace)), elsewhere)
    for name in (each for each in names if " " not in each):
        is_dataset = name.count(".") == 1
        keys = [partition_key(name), size_key(name)] if is_dataset else []
        keys += [] if is_dataset else [status_key(name, status) for status in get_args(Status)]
        yield from (row.schedule for key in keys for row in every(partial(ports.catalog.subscriptions, key)))


def _schedules_in(ports: Ports, namespace: str) -> Iterator[str]:
    return (schedule for app in _names(ports, "app", namespace) for schedule in schedules_of(ports, app))


def _children(ports: Ports, kind: Kind, name: str) -> list[str]:
    if kind == "namespace":
        kinds: tuple[Kind, ...] = ("app", "dataset", "policy", "pool", "calendar")
        return sorted(member for each in kinds for member in _names(ports, each, name))
    messages = [row.schedule for row in messages_of(ports, name)]
    own = [schedule for schedule in schedules_of(ports, name) if not ids.is_of_dag(schedule)]
    return sorted([*_names(ports, "workflow", name), *own, *_names(ports, "dag", name), *messages])


def messages_of(ports: Ports, app: str) -> Iterator[Listing]:
    return every(partial(ports.catalog.messages, app))


def _names(ports: Ports, kind: Kind, parent: str) -> list[str]:
    return [row.name for row in definitions_in(ports, kind, parent)]
