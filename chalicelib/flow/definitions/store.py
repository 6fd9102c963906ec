"""Put, get and delete all definitions but schedules. A definition that others refer to is not deleted (L17)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any, cast, get_args

from chalicelib.core import errors, ids
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import ScheduleState, Version
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.triggers.program_status import Status, status_key
from chalicelib.core.triggers.size import size_key
from chalicelib.core.why import Why, joined, mention, plain
from chalicelib.core.writes import RemoveDefinition
from chalicelib.flow import lookup, priority
from chalicelib.flow.definitions.of_kind import KINDS, messages_of, names_in
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
    rules = KINDS[kind]
    document = rules.resolved(ports, document)
    check_size(document)
    rules.check(ports, name, document)
    for _ in range(MAX_CONFLICTS):
        old = ports.rows.get(Definition, kind, name)
        if if_match is not None and if_match != (old.version if old else None):
            break
        if old is not None and dict(old.document) == dict(document):
            rules.follow(ports, old, [])
            return Change("unchanged", old.version)
        new = Definition(kind, name, document, old.version + 1 if old else 1, ports.clock.now(), by)
        if old is not None:
            new = replace(new, counted=old.counted, edition=old.edition, unknown=old.unknown)
        new, plan = rules.plan(ports, new, old)
        if ports.ledger.commit(plan) is None:
            rules.follow(ports, new, plan)
            if old is None:
                return Change("created", new.version)
            if old.document.get("aging") != new.document.get("aging"):
                priority.rank_all(ports, rules.queues(ports, new))
            return Change("replaced", new.version)
    raise errors.changed_meanwhile(f"{kind} {name}")


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
    rules = KINDS[kind]
    rules.clear(ports, name)  # what a deletion that died has left
    found = get(ports, kind, name)
    if if_match is not None and if_match != found.version:
        raise errors.changed_meanwhile(f"{kind} {name}")
    word = as_named(kind, name)
    referring = referrers(ports, [word]).get(word, []) if rules.is_referred_to else []
    left: list[Why | str] = [*referring, *rules.members(ports, name)]
    if left:
        raise in_use(kind, "one", left, "delete or change these first")
    remove(ports, found)
    rules.clear(ports, name)


def remove(ports: Ports, row: Definition) -> None:
    """Delete a definition in the version that was read, without a check of its referrers. Raises ``changed_meanwhile``
    if it was replaced since."""
    for _ in range(MAX_CONFLICTS):
        plan = [RemoveDefinition(row), *KINDS[row.kind].released(ports, row)]
        if ports.ledger.commit(plan) is None:
            return
        present = ports.rows.get(Definition, row.kind, row.name)
        if present is None:
            return
        if present.version != row.version:
            break
    raise errors.changed_meanwhile(f"{row.kind} {row.name}")


def in_use(kind: str, got: str, left: Sequence[Why | str], hint: str) -> SluiceError:
    """The error for the deletion of ``got``, with the referrers ``left`` that still use it."""
    listed = joined(left[:5], ", ").then(f" and {len(left) - 5} more" if len(left) > 5 else "")
    article = "an" if kind[0] in "aeiou" else "a"
    message = plain(f"expected {article} {kind} that nothing refers to, got {got} used by ", listed)
    return SluiceError("in_use", message, None, hint)


def referrers(
    ports: Ports, names: Collection[str], but: Collection[str] = (), elsewhere: int = MAX_ELSEWHERE
) -> dict[str, list[Why]]:
    """The referrers of workflows, datasets and policies, as ``schedule <full name>``, by the name that they refer to.

    ``but`` are schedules to leave out, and apps whose messages to leave out. ``elsewhere`` bounds how many schedules,
    and how many workflows, of other namespaces are read. Only requests of admins read so many.
    """
    found: dict[str, list[Why]] = {}
    for schedule in sorted(set(_candidates(ports, names, elsewhere)) - set(but)):
        referrer = _referrer("schedule", schedule)
        if ids.is_of_dag(schedule):
            referrer = _referrer("dag", ids.dag_of(schedule))
        for name in _named_by(ports, schedule) & set(names):
            if referrer not in found.setdefault(name, []):
                found[name].append(referrer)
    spaces = {name.partition(".")[0] for name in names if name.count(".") == 2}
    for app in {app for space in spaces for app in names_in(ports, "app", space)} - set(but):
        # A message names a workflow of its own namespace, and its listing row holds that name.
        for row in messages_of(ports, app):
            if row.workflow in names:
                message = _referrer("message", row.schedule.replace(f".{ids.MESSAGE}", "."))
                found.setdefault(row.workflow, []).append(message)
    for workflow, datasets in _with_datasets(ports, names, elsewhere):
        for name in (each for each in datasets if each in names):
            found.setdefault(name, []).append(_referrer("workflow", workflow))
    return found


def _with_datasets(ports: Ports, names: Collection[str], elsewhere: int) -> Iterator[tuple[str, list[str]]]:
    """The workflows that may read or produce one of the datasets among these names, with their datasets: all workflows
    of the same namespaces, and ``elsewhere`` of others."""
    own = {name.partition(".")[0] for name in names if name.count(".") == 1 and " " not in name}
    others = [namespace for namespace in names_in(ports, "namespace", "") if namespace not in own] if own else []
    for row in chain(_workflows_in(ports, own), islice(_workflows_in(ports, others), elsewhere)):
        if workflow := of_datasets(row):
            space = row.name.partition(".")[0]
            yield row.name, list(dict.fromkeys((*workflow.datasets_read(space), *workflow.datasets_produced(space))))


def of_datasets(row: Definition) -> Workflow | None:
    """The workflow of a row, if it reads or produces datasets."""
    document = row.document
    return Workflow.model_validate(document) if document.get("reads") or document.get("produces") else None


def _named_by(ports: Ports, schedule: str) -> frozenset[str]:
    """What a schedule that exists names; nothing for a node of a former graph of a DAG."""
    state = ports.rows.get(ScheduleState, schedule)
    version = ports.rows.get(Version, schedule, state.version) if state is not None and state.exists else None
    if version is None or (ids.is_of_dag(schedule) and version.definition.get("ttl") is not None):
        return frozenset()
    return named(version.definition)


def _referrer(kind: str, name: str) -> Why:
    return plain(f"{kind} ", mention("other", name))


def as_named(kind: Kind, name: str) -> str:
    """A definition as `named` returns it, with the kind where a dataset may have the same name."""
    return f"{kind} {name}" if KINDS[kind].shares_names else name


def named(document: Any) -> frozenset[str]:
    """The workflows, datasets, policies, pools and calendars that a schedule names in any field."""
    if isinstance(document, list | tuple):
        return frozenset(name for part in document for name in named(part))
    if not isinstance(document, Mapping):
        return frozenset()
    return frozenset(name for key, value in document.items() for name in _named_in(key, value))


def _named_in(key: str, value: Any) -> Iterable[str]:
    """What a field names."""
    match key, value:
        case "workflow" | "dataset", str():
            return [value]
        case "policy" | "pool" | "calendar", str():
            return [as_named(cast("Kind", key), value)]
        case "workflows", list() | tuple():
            return value
        case _:
            return named(value) if key not in OWN_WORDS else ()


def _candidates(ports: Ports, names: Collection[str], elsewhere: int) -> Iterator[str]:
    """Schedules that may refer to these names: all of the same namespaces, ``elsewhere`` of others, and all with a
    subscription to their events."""
    own = {name.rpartition(" ")[2].partition(".")[0] for name in names}
    others = [namespace for namespace in names_in(ports, "namespace", "") if namespace not in own] if own else []
    yield from _schedules_in(ports, own)
    yield from islice(_schedules_in(ports, others), elsewhere)
    for key in (key for name in names if " " not in name for key in _event_keys(name)):
        yield from (row.schedule for row in every(partial(ports.catalog.subscriptions, key)))


def _event_keys(name: str) -> list[str]:
    """The event keys of a dataset or a workflow."""
    if name.count(".") == 1:
        return [partition_key(name), size_key(name)]
    return [status_key(name, status) for status in get_args(Status)]


def _workflows_in(ports: Ports, namespaces: Iterable[str]) -> Iterator[Definition]:
    apps = (app for namespace in namespaces for app in names_in(ports, "app", namespace))
    return (row for app in apps for row in definitions_in(ports, "workflow", app))


def _schedules_in(ports: Ports, namespaces: Iterable[str]) -> Iterator[str]:
    apps = (app for namespace in namespaces for app in names_in(ports, "app", namespace))
    return (schedule for app in apps for schedule in schedules_of(ports, app))
