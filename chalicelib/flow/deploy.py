"""One-request deployment of an app: its datasets, workflows and schedules (L8). Each is changed atomically, the whole
is not; repeating the request finishes a half-done one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chalicelib.core import errors, triggers
from chalicelib.core.errors import SluiceError
from chalicelib.core.model import App
from chalicelib.core.rows import Definition, Subscription, Version
from chalicelib.flow import definitions, facts, schedules
from chalicelib.ports import Kind, Page, Ports

Report = dict[str, list[str]]


def deploy(ports: Ports, namespace: str, app: str, document: App, by: str, dry_run: bool = False) -> Report:
    """Create or replace what the document names. Returns what was created, replaced and left unchanged, by name.

    Everything is validated before anything is stored. With ``dry_run`` the report is all that happens.
    """
    name = f"{namespace}.{app}"
    _check_names(namespace, app, document)
    definitions.require(ports, "namespace", namespace)
    _check(ports, name, document)
    report: Report = {"created": [], "replaced": [], "unchanged": []}
    for kind, full, body in _parts(name, document):
        did = _foresee(ports, kind, full, body) if dry_run else definitions.put(ports, kind, full, body, by).did
        report[did].append(f"{kind} {full}")
    for short, schedule in document.schedules.items():
        full = f"{name}.{short}"
        before = ports.catalog.gate(full)
        lives = before is not None and before.mode != "deleted"
        if dry_run:
            old = facts.definition_of(ports, before) if lives else None
            same = old == schedule.definition().resolved(namespace, app)
            report["unchanged" if same else "replaced" if lives else "created"].append(f"schedule {full}")
            continue
        after, new = schedules.put(ports, full, schedule, by, checked=True)
        report["created" if new else "unchanged" if after == before else "replaced"].append(f"schedule {full}")
    return report


def _parts(name: str, document: App) -> list[tuple[Kind, str, Mapping[str, Any]]]:
    namespace = name.partition(".")[0]
    shell = document.model_dump(mode="json", include={"description", "tags", "owner"})
    parts: list[tuple[Kind, str, Mapping[str, Any]]] = [("app", name, shell)]
    parts += [("dataset", f"{namespace}.{n}", d.model_dump(mode="json")) for n, d in document.datasets.items()]
    return parts + [("workflow", f"{name}.{n}", w.model_dump(mode="json")) for n, w in document.workflows.items()]


def _foresee(ports: Ports, kind: Kind, name: str, body: Mapping[str, Any]) -> str:
    old = ports.catalog.definition(kind, name)
    body = definitions.resolve_bucket(ports, body) if kind == "dataset" else body
    return "created" if old is None else "unchanged" if dict(old.document) == dict(body) else "replaced"


def _check_names(namespace: str, app: str, document: App) -> None:
    """A document that says where it belongs must be sent there."""
    for field, said, asked in (("namespace", document.namespace, namespace), ("app", document.app, app)):
        if said is not None and said != asked:
            raise errors.invalid(field, f"{asked!r}, as the path says", said, "correct the document or the path")


def _check(ports: Ports, name: str, document: App) -> None:
    """All references of all schedules, seen with the document's own parts as if they were stored."""
    namespace, _, app = name.partition(".")
    seen = replace(ports, catalog=Foreseen(ports, name, document))
    _check_prefixes(ports, namespace, document)
    for short, schedule in document.schedules.items():
        try:
            full = schedule.definition().resolved(namespace, app)
            schedules.check_references(seen, f"{name}.{short}", full)
        except SluiceError as error:
            raise error.under(f"schedules.{short}") from None


def _check_prefixes(ports: Ports, namespace: str, document: App) -> None:
    """A prefix belongs to one dataset: refused here, for halfway through a deployment is too late. It is free when its
    dataset's turn comes if it is free now, or is given up by a dataset before it in the document."""
    owners: dict[tuple[str, str], str | None] = {}
    for short, dataset in document.datasets.items():
        name = f"{namespace}.{short}"
        body = definitions.resolve_bucket(ports, dataset.model_dump(mode="json"))
        place = (str(body["bucket"]), dataset.prefix)
        owner = owners[place] if place in owners else ports.catalog.dataset_at(*place)
        if owner not in (None, name):
            raise definitions.prefix_taken(*place, str(owner)).under(f"datasets.{short}")
        stored = ports.catalog.definition("dataset", name)
        if stored is not None:
            owners[str(stored.document["bucket"]), str(stored.document["prefix"])] = None
        owners[place] = name


def _is_enabled(ports: Ports, schedule: str) -> bool:
    gate = ports.catalog.gate(schedule)
    return gate is not None and gate.mode == "enabled"


class Foreseen:
    """The catalog as it will be once the document is stored: its own parts first, then what is there already."""

    def __init__(self, ports: Ports, name: str, document: App) -> None:
        self._catalog = ports.catalog
        now = ports.clock.now()
        self._rows = {(kind, full): Definition(kind, full, body, 0, now) for kind, full, body in _parts(name, document)}
        namespace, _, app = name.partition(".")
        self._schedules = {
            f"{name}.{short}": schedule.definition().resolved(namespace, app)
            for short, schedule in document.schedules.items()
        }
        self._enabled = {
            full
            for full, each in ((f"{name}.{short}", each) for short, each in document.schedules.items())
            if each.enabled or (each.enabled is None and _is_enabled(ports, full))
        }

    def definition(self, kind: Kind, name: str) -> Definition | None:
        return self._rows.get((kind, name)) or self._catalog.definition(kind, name)

    def definitions(self, kind: Kind, parent: str, limit: int, cursor: str | None) -> Page[Definition]:
        page = self._catalog.definitions(kind, parent, limit, cursor)
        own = [row for (known, full), row in self._rows.items() if (known, full.rpartition(".")[0]) == (kind, parent)]
        return Page((*page.items, *own), page.cursor)

    def subscriptions(self, event_key: str, limit: int, cursor: str | None) -> Page[Subscription]:
        """The index as the document leaves it: its schedules' old rows gone, those of its enabled ones in."""
        page = self._catalog.subscriptions(event_key, limit, cursor)
        own = [
            Subscription(event_key, name, 0, 0, leaf.id, 0)
            for name, schedule in self._schedules.items()
            if name in self._enabled
            for leaf in triggers.leaves(schedule.trigger)
            if event_key in triggers.event_keys(leaf.trigger)
        ]
        return Page((*(row for row in page.items if row.schedule not in self._schedules), *own), page.cursor)

    def version(self, schedule: str, version: int) -> Version | None:
        own = self._schedules.get(schedule) if version == 0 else None
        if own is None:
            return self._catalog.version(schedule, version)
        return Version(schedule, 0, own.model_dump(mode="json"), 0)

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._catalog, attribute)
