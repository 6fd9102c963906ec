"""Check app documents with the service's own code, in memory: what a deployment of them would refuse, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any

from pydantic import ValidationError

from chalicelib.core import errors
from chalicelib.core.definitions.app import App as AppDocument
from chalicelib.core.documents import SENT
from chalicelib.core.errors import SluiceError
from chalicelib.core.why import Why
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import deploy
from sluice.errors import Problem
from sluice.testing.app import App, problem_of

SAME = 0.75  # how similar two names are of which one is probably a typing error
_OF_APP = ("workflows", "schedules", "dags", "messages")  # the other parts have names of the namespace
_PARTS = (*_OF_APP, "datasets", "policies", "pools", "calendars")


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found in one document. ``elsewhere`` are references to what only the installation may have."""

    problems: tuple[Problem, ...] = ()
    elsewhere: tuple[Problem, ...] = ()


def check(contents: Sequence[Mapping[str, Any]], now: datetime) -> list[Checked]:
    """Deploy documents to one empty installation, in the order in which they refer to each other. Each names its
    ``namespace`` and ``app``."""
    world = App({"namespace": "empty", "app": "empty"}, at=now)
    found: dict[int, tuple[SluiceError, ...]] = {}
    left = dict(enumerate(contents))
    while left:
        deployed = []
        for number, content in left.items():
            found[number] = _problems(world, content)
            if not found[number]:
                deployed.append(number)
        if not deployed:
            break
        left = {number: content for number, content in left.items() if number not in deployed}
    apps = {_app_of(content) for content in contents}
    defined = {name for content in contents for name in _names(content)}
    return [_sorted(found[number], apps, defined) for number in range(len(contents))]


def _problems(world: App, content: Mapping[str, Any]) -> tuple[SluiceError, ...]:
    namespace, app = str(content["namespace"]), str(content["app"])
    try:
        document = AppDocument.model_validate(content, context=SENT)
        with world.quiet():
            world.install(content)
            store.put(world.ports, "namespace", namespace, {}, world.user)
            deploy.deploy(world.ports, namespace, app, document, world.user)
            world.settle()
    except ValidationError as invalid:
        return errors.from_validation(invalid, AppDocument).each
    except SluiceError as refused:
        return refused.each
    return ()


def _sorted(problems: Sequence[SluiceError], apps: set[str], defined: set[str]) -> Checked:
    """The problems of a document without those that follow from a problem of another document."""
    own: list[Problem] = []
    elsewhere: list[Problem] = []
    for error in problems:
        unknown = next(iter(error.said.named("reference")), None)
        if unknown is None or _is_misspelt(unknown, error.hinted):
            own.append(problem_of(error))
        elif unknown not in defined:
            parts = unknown.split(".")
            (own if len(parts) == 3 and ".".join(parts[:2]) in apps else elsewhere).append(problem_of(error))
    return Checked(tuple(own), tuple(elsewhere))


def _is_misspelt(name: str, hint: Why | None) -> bool:
    """Whether the name that the hint suggests is nearly the same; the namespace is no part of the comparison."""
    meant = hint.named("other") if hint is not None else ()
    if not meant:
        return False
    last, other = name.rpartition(".")[2], meant[0].rpartition(".")[2]
    return SequenceMatcher(None, last, other).ratio() >= SAME


def _app_of(content: Mapping[str, Any]) -> str:
    return f"{content['namespace']}.{content['app']}"


def _names(content: Mapping[str, Any]) -> Iterator[str]:
    """The full names of what a document defines."""
    for kind in _PARTS:
        place = _app_of(content) if kind in _OF_APP else content["namespace"]
        parts = content.get(kind)
        yield from (f"{place}.{name}" for name in (parts if isinstance(parts, dict) else ()))
