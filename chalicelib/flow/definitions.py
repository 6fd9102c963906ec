"""Namespaces, apps, workflows and datasets: put, get, delete. What is referenced is not deleted (L17)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.core import errors, triggers
from chalicelib.core.errors import SluiceError
from chalicelib.core.model import Dataset, Schedule
from chalicelib.core.rows import Definition, PrefixRow
from chalicelib.core.triggers import PartitionTrigger, ProgramStatusTrigger
from chalicelib.core.writes import Create, Delete, PutDefinition, Write
from chalicelib.flow import facts
from chalicelib.flow.apply import MOST_RACES
from chalicelib.ports import Kind, Ports

MOST_DOCUMENT = 100_000  # bytes


@dataclass(frozen=True, slots=True)
class Change:
    """What a put did: ``created``, ``replaced`` or ``unchanged``, and the version that stands now."""

    did: str
    version: int


def put(
    ports: Ports, kind: Kind, name: str, document: Mapping[str, Any], by: str, if_match: int | None = None
) -> Change:
    """Create or replace a document. Putting what is there changes nothing; last write wins, unless ``if_match``."""
    if kind == "dataset":
        document = resolve_bucket(ports, document)
    check_size(document)
    for _ in range(MOST_RACES):
        old = ports.catalog.definition(kind, name)
        if if_match is not None and if_match != (old.version if old else None):
            raise errors.changed_meanwhile(f"{kind} {name}")
        if old is not None and dict(old.document) == dict(document):
            return Change("unchanged", old.version)
        new = Definition(kind, name, document, old.version + 1 if old else 1, ports.clock.now(), by)
        plan: list[Write] = [PutDefinition(new, old.version if old else None)]
        if kind == "dataset":
            plan += _prefix_plan(ports, new, old)
        if ports.ledger.commit(plan) is None:
            return Change("replaced" if old else "created", new.version)
    raise errors.changed_meanwhile(f"{kind} {name}")


def check_size(document: Mapping[str, Any]) -> None:
    """A row holds 400 KB in DynamoDB, and a run's carries the properties of workflow, schedule and request."""
    size = len(json.dumps(document).encode())
    if size > MOST_DOCUMENT:
        hint = "put large data into S3 and pass a reference"
        raise SluiceError("too_large", f"expected a document of at most {MOST_DOCUMENT} bytes, got {size}", None, hint)


def get(ports: Ports, kind: Kind, name: str) -> Definition:
    found = ports.catalog.definition(kind, name)
    if found is None:
        raise errors.not_found(kind, name)
    return found


def delete(ports: Ports, kind: Kind, name: str, if_match: int | None = None) -> None:
    found = get(ports, kind, name)
    if if_match is not None and if_match != found.version:
        raise errors.changed_meanwhile(f"{kind} {name}")
    referrers = _referrers(ports, kind, name)
    if referrers:
        listed = ", ".join(referrers[:5]) + (f" and {len(referrers) - 5} more" if len(referrers) > 5 else "")
        message = f"expected a {kind} that nothing refers to, got one used by {listed}"
        raise SluiceError("in_use", message, None, "delete or change these first")
    plan: list[Write] = [Delete(found)]
    if kind == "dataset":
        dataset = Dataset.model_validate(found.document)
        plan.append(Delete(PrefixRow(dataset.bucket, dataset.prefix, name)))
    ports.ledger.commit(plan)


def require(ports: Ports, kind: Kind, name: str) -> None:
    """Refuse with 404 what belongs to a namespace or app that does not exist."""
    if ports.catalog.definition(kind, name) is None:
        raise errors.not_found(kind, name, f"create the {kind} first")


def resolve_bucket(ports: Ports, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """``lake`` stands for the installation's own lake bucket, whose name the template makes."""
    return {**document, "bucket": ports.settings.lake_bucket} if document.get("bucket") == "lake" else document


def _prefix_plan(ports: Ports, new: Definition, old: Definition | None) -> list[Write]:
    """Move the prefix row along; a prefix belongs to one dataset only, or an object would be in two."""
    dataset = Dataset.model_validate(new.document)
    before = Dataset.model_validate(old.document) if old else None
    if before is not None and (before.bucket, before.prefix) == (dataset.bucket, dataset.prefix):
        return []
    owner = ports.catalog.dataset_at(dataset.bucket, dataset.prefix)
    if owner is not None:
        raise prefix_taken(dataset.bucket, dataset.prefix, owner)
    plan: list[Write] = [Create(PrefixRow(dataset.bucket, dataset.prefix, new.name))]
    return [*plan, Delete(PrefixRow(before.bucket, before.prefix, new.name))] if before else plan


def prefix_taken(bucket: str, prefix: str, owner: str) -> SluiceError:
    got = f"{bucket}/{prefix}, which belongs to dataset {owner}"
    return SluiceError("conflict", f"expected a prefix of its own, got {got}", "prefix", "choose another prefix")


def _referrers(ports: Ports, kind: Kind, name: str) -> list[str]:
    """Who would be left without it. An admin's request, so reading the namespace's schedules is what it may cost."""
    if kind == "namespace":
        children = [*_names(ports, "app", name), *_names(ports, "dataset", name)]
        return sorted(children)
    if kind == "app":
        return sorted([*_names(ports, "workflow", name), *schedules_of(ports, name)])
    namespace = name.partition(".")[0]
    found: list[str] = []
    for app in _names(ports, "app", namespace):
        for schedule_name in schedules_of(ports, app):
            schedule = facts.definition_of(ports, ports.catalog.gate(schedule_name))
            if schedule is not None and _refers(schedule, kind, name):
                found.append(f"schedule {schedule_name}")
    return found


def schedules_of(ports: Ports, app: str) -> list[str]:
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = ports.catalog.schedules(app, 1000, cursor)
        names += page.items
        if page.cursor is None:
            return names
        cursor = page.cursor


def _names(ports: Ports, kind: Kind, parent: str) -> list[str]:
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = ports.catalog.definitions(kind, parent, 1000, cursor)
        names += [row.name for row in page.items]
        if page.cursor is None:
            return names
        cursor = page.cursor


def _refers(schedule: Schedule, kind: Kind, name: str) -> bool:
    leaves = [leaf.trigger for leaf in triggers.leaves(schedule.trigger)]
    if kind == "dataset":
        return any(isinstance(leaf, PartitionTrigger) and leaf.dataset == name for leaf in leaves)
    upstream = any(isinstance(leaf, ProgramStatusTrigger) and leaf.workflow == name for leaf in leaves)
    return upstream or schedule.workflow == name
