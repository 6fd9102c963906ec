"""Build the document of an app in Python: every field of it has a function or a method with types (L15).

from sluice.builder import app, emr_serverless, partition, schedule, workflow

flights = app("demo", "flights").add(
    workflow("clean").target(emr_serverless("s3://code/clean.py")).retries(attempts=2),
    schedule("nightly").runs("clean").on(partition("orders", 4)).concurrency(1).wait_until_met(),
)
Client().apply(flights)

Names are those of the document, with two exceptions. A schedule `runs` a workflow, `on` a trigger, `where` constraints
hold. `from_`, `all_of`, `any_of`, `lambda_function` stand for words that Python has taken.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from sluice import builder_parts
from sluice.builder_base import UNSET, Named, given, plain
from sluice.builder_parts import *  # noqa: F403 - the parts are made, and listed in its `__all__`
from sluice.builder_parts import Dag, Dataset, HolidayCalendar, Message, Policy, Pool, Schedule, Target, Workflow
from sluice.errors import WrongUsage

__all__ = [
    *builder_parts.__all__,
    *("App", "Named", "app", "dag", "dataset", "holidays", "message", "policy", "pool", "schedule", "workflow"),
]

KINDS: tuple[type[Named], ...] = (Dataset, Policy, Pool, HolidayCalendar, Workflow, Schedule, Dag)
GROUPS = {kind.group: kind for kind in KINDS}


class App:
    """The document of an app. `sluice.Client.apply` and `sluice.testing.App` take it as it is."""

    def __init__(
        self,
        namespace: str | None = UNSET,
        app: str | None = UNSET,
        *,
        description: str = UNSET,
        tags: Mapping[str, str] = UNSET,
        owner: str = UNSET,
        default_target: Target | None = UNSET,
        data_bucket: str | None = UNSET,
    ) -> None:
        own = {"namespace": namespace, "app": app, "description": description, "tags": tags, "owner": owner}
        self._own = given({**own, "default_target": default_target, "data_bucket": data_bucket})
        self._parts: dict[str, dict[str, Named]] = {}

    def add(self, *parts: Named) -> App:
        """Add schedules, workflows, datasets, policies, pools, calendars and DAGs. Raises `WrongUsage` for a name used
        twice, and for a message, which is put by itself."""
        for part in parts:
            if part.group not in GROUPS:
                hint = "put it by itself: Client().put(path, message.document()), or sluice message put --file"
                raise WrongUsage(f"expected a part of an app, got the message {part.name!r}", part.group, hint)
            group = self._parts.setdefault(part.group, {})
            if part.name in group:
                hint = "give each another name"
                raise WrongUsage(f"expected each name once, got {part.name!r} twice", part.group, hint)
            group[part.name] = part
        return self

    def part(self, group: str, name: str) -> Named:
        """A part that was added, such as ``part("schedules", "nightly")``, to be changed."""
        return self._parts[group][name]

    def document(self) -> dict[str, Any]:
        """The document that the API takes."""
        groups = {group: {name: part.document() for name, part in parts.items()}
                  for group, parts in self._parts.items()}  # fmt: skip
        found: dict[str, Any] = plain({**self._own, **groups})
        return found

    def yaml(self) -> str:
        """The document as a file that ``sluice apply`` reads. A dollar sign is doubled, as placeholders need it."""
        from sluice import yaml12

        return yaml12.dump(_escaped(self.document()))

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> App:
        """The builder of a document. Raises `WrongUsage` for a field that an app does not have."""
        own = {field: value for field, value in document.items() if field not in GROUPS}
        try:
            made = cls(**own)
        except TypeError:
            known = ("namespace", "app", "description", "tags", "owner", "default_target", "data_bucket")
            field = next(field for field in own if field not in known)
            raise WrongUsage(f"expected a field of an app, got {field!r}", field, "remove the field") from None
        for group, kind in GROUPS.items():
            if group in document:
                made._parts[group] = {}
                made.add(*(kind(name, content) for name, content in document[group].items()))
        return made

    @classmethod
    def load(cls, path: str | os.PathLike[str], values: Mapping[str, str] | None = None) -> App:
        """The builder of a YAML or JSON file, whose placeholders ``values`` fill."""
        from sluice import documents

        return cls.of(documents.load(os.fspath(path), values))


def app(namespace: str, name: str) -> App:
    return App(namespace, name)


def schedule(name: str) -> Schedule:
    return Schedule(name)


def workflow(name: str) -> Workflow:
    return Workflow(name)


def dataset(name: str) -> Dataset:
    return Dataset(name)


def policy(name: str) -> Policy:
    return Policy(name)


def message(name: str) -> Message:
    return Message(name)


def pool(name: str) -> Pool:
    return Pool(name)


def holidays(name: str) -> HolidayCalendar:
    """A calendar of holidays."""
    return HolidayCalendar(name)


def dag(name: str) -> Dag:
    return Dag(name)


def _escaped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _escaped(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_escaped(each) for each in value]
    return value.replace("$", "$$") if isinstance(value, str) else value
