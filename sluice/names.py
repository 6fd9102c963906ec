"""Kinds of documents, their full names, and their paths in the API."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sluice import checks
from sluice.client import segment
from sluice.errors import WrongUsage


@dataclass(frozen=True, slots=True)
class Kind:
    """``parts`` are the parts of a full name: ``namespace.app.schedule`` has three."""

    name: str
    collection: str
    parts: tuple[str, ...]

    @property
    def pattern(self) -> str:
        return ".".join(self.parts)


NAMESPACE = Kind("namespace", "namespaces", ("namespace",))
APP = Kind("app", "apps", ("namespace", "app"))
DATASET = Kind("dataset", "datasets", ("namespace", "dataset"))
POLICY = Kind("policy", "policies", ("namespace", "policy"))
POOL = Kind("pool", "pools", ("namespace", "pool"))
CALENDAR = Kind("calendar", "calendars", ("namespace", "calendar"))
WORKFLOW = Kind("workflow", "workflows", ("namespace", "app", "workflow"))
SCHEDULE = Kind("schedule", "schedules", ("namespace", "app", "schedule"))
MESSAGE = Kind("message", "messages", ("namespace", "app", "message"))
DAG = Kind("dag", "dags", ("namespace", "app", "dag"))
KINDS = (NAMESPACE, APP, WORKFLOW, SCHEDULE, DATASET, POLICY, POOL, CALENDAR, MESSAGE, DAG)


def kind_of(word: str) -> Kind:
    """The kind with this name, in singular or plural."""
    for kind in KINDS:
        if word.lower() == kind.name:
            return kind
    collection = checks.one_of(word, [kind.collection for kind in KINDS], "KIND")
    return next(kind for kind in KINDS if kind.collection == collection)


def full_name(kind: Kind, name: str, namespace: str | None = None, app: str | None = None, field: str = "NAME") -> str:
    """The full name ``demo.flights.clean`` of ``clean``, ``flights.clean`` or ``demo.flights.clean``. The options
    ``-n`` and ``-a`` supply missing parts. ``field`` is the argument that held the name."""
    if app is not None and "." not in app and "app" not in kind.parts:
        raise WrongUsage(f"expected no app, got {app!r}: {a_(kind)} belongs to a namespace", "--app", "leave it out")
    namespace, app = place(namespace, app)
    parts = name.split(".")
    missing = kind.parts[: -len(parts)] if len(parts) < len(kind.parts) else ()
    given = {"namespace": namespace, "app": app}
    front = [given[part] for part in missing]
    if app is not None and "app" in kind.parts[:-1] and len(parts) == len(kind.parts) and parts[1] != app:
        raise WrongUsage(f"expected {a_(kind)} of app {app}, got {name!r}", field, "leave out --app, or the full name")
    if len(parts) > len(kind.parts) or not all(parts) or not all(front):
        flags = " ".join(f"--{part} ..." for part in missing if not given[part])
        hint = f"write the full name, or add {flags}" if flags and all(parts) else "write the full name"
        raise WrongUsage(f"expected {a_(kind)} as {kind.pattern}, got {name!r}", field, hint)
    return ".".join([*(str(part) for part in front), *parts])


def a_(kind: Kind) -> str:
    return f"{'an' if kind is APP else 'a'} {kind.name}"


def place(namespace: str | None, app: str | None) -> tuple[str | None, str | None]:
    """The namespace and the app that ``-n`` and ``-a`` name; ``-a demo.flights`` names both."""
    if app is None or "." not in app:
        return namespace, app
    above, _, short = full_name(APP, app, field="--app").partition(".")
    return above, short


def path_of(kind: Kind, full: str) -> str:
    """The path of a document: ``/v1/namespaces/demo/apps/flights/schedules/clean`` for ``demo.flights.clean``."""
    parts = full.split(".")
    return f"{collection_path(kind, parts[:-1])}/{segment(parts[-1])}"


def collection_path(kind: Kind, parents: list[str]) -> str:
    """The path that lists the documents of a kind; ``parents`` are the namespace, and for some kinds the app."""
    between = "".join(
        f"/{collection}/{segment(parent)}" for collection, parent in zip(("namespaces", "apps"), parents, strict=False)
    )
    return f"/v1{between}/{kind.collection}"


# The last part of the name of a notice: a message that Sluice itself sends, named by a digest.
_NOTICE = re.compile(r"~?notice-[0-9a-f]{24}")


def is_internal(schedule: str) -> bool:
    """Whether a schedule or message is one that Sluice made: a notice, or a node of a DAG. The start of a DAG is not
    internal, because its runs are those of the DAG."""
    last = schedule.rpartition(".")[2]
    node = "~" in last[1:] and not last.startswith("~") and not last.endswith("~")
    return node or _NOTICE.fullmatch(last) is not None
