"""The grants document of a namespace: what the documents of other namespaces may use of it (O9).

Example, of the namespace ``flights``:

    grants:
      - to: marketing
        run: [core.clean]
        follow: [core.*]
        datasets: [landed]
      - to: finance
        pools: [spark]
        policies: [calm]
        events: [sales.*]

A name has no namespace, because it is always that of the document. ``*`` at its end stands for any text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from chalicelib.core.documents import Document, check_name
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.why import Why, joined, mention

GrantKind = Literal["run", "follow", "context", "datasets", "events", "pools", "policies"]
KINDS: tuple[GrantKind, ...] = get_args(GrantKind)
MISSING = "grant_missing"  # the code of `waiting_for`
MAX_GRANTS = 200
MAX_NAMES = 100  # of one kind in one grant

# What a grant lets the documents of another namespace do, before the name of what they use.
MEANING: dict[GrantKind, str] = {
    "run": "run",
    "follow": "follow",
    "context": "read the context of",
    "datasets": "use dataset",
    "events": "receive event",
    "pools": "use pool",
    "policies": "use policy",
}
_OF_APP: tuple[GrantKind, ...] = ("run", "follow", "context")
_SHORT = r"[a-z0-9][a-z0-9_-]*"
_FITTING: dict[bool, re.Pattern[str]] = {
    True: re.compile(rf"{_SHORT}\.{_SHORT}\*?|{_SHORT}\.\*|{_SHORT}\*|\*"),
    False: re.compile(rf"{_SHORT}\*?|\*"),
}
_EVENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*\*?|\*")


@dataclass(frozen=True, slots=True)
class ForeignUse:
    """A use of what belongs to another namespace. ``name`` is its full name, ``by`` the namespace whose document names
    it. ``workflow`` is that of a schedule which is followed: a grant may name either."""

    kind: GrantKind
    name: str
    by: str
    workflow: str = ""

    @property
    def owner(self) -> str:
        return self.name.partition(".")[0]

    @property
    def short_names(self) -> tuple[str, ...]:
        """The names that a grant of the owner may have."""
        names = [self.name] if not self.workflow.startswith(f"{self.owner}.") else [self.name, self.workflow]
        return tuple(name.partition(".")[2] for name in names)

    @property
    def what(self) -> str:
        """The use in words: ``run flights.core.clean``."""
        return f"{MEANING[self.kind]} {self.name}"

    @property
    def text(self) -> str:
        """The use as a run's row stores it; `parse_use` reads it."""
        return f"{self.kind} {self.name} {self.by}"


def parse_use(text: str) -> ForeignUse:
    """The inverse of ``ForeignUse.text``. Raises ValueError for any other text."""
    kind, name, by = text.split(" ")
    for known in KINDS:
        if kind == known:
            return ForeignUse(known, name, by)
    raise ValueError(f"expected one of {', '.join(KINDS)}, got {kind}")


class Grant(Document):
    """What the documents of namespace ``to`` may use. They ``run`` workflows, ``follow`` the status of workflows or
    schedules, and their runs read the ``context`` of workflows. They also use datasets, event types, pools and
    policies."""

    to: str
    run: tuple[str, ...] = Field(default=(), max_length=MAX_NAMES)
    follow: tuple[str, ...] = Field(default=(), max_length=MAX_NAMES)
    context: tuple[str, ...] = Field(default=(), max_length=MAX_NAMES)
    datasets: tuple[str, ...] = Field(default=(), max_length=MAX_NAMES)
    events: tuple[str, ...] = Field(default=(), max_length=MAX_NAMES)
    pools: tuple[str, ...] = Field(default=(), max_length=MAX_NAMES)
    policies: tuple[str, ...] = Field(default=(), max_length=MAX_NAMES)

    @field_validator("to")
    @classmethod
    def _is_one_namespace(cls, to: str) -> str:
        try:
            return check_name(to)
        except SluiceError:
            hint = "write one grant for each namespace: there is no grant to everybody"
            raise invalid("", "the exact name of one namespace", to, hint) from None

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        if not any(self.names(kind) for kind in KINDS):
            raise invalid("", "something that the namespace may use", f"none of {', '.join(KINDS)}", "add one of them")
        for kind in KINDS:
            for number, name in enumerate(self.names(kind)):
                _check_name(kind, name, f"{kind}.{number}")
        return self

    def names(self, kind: GrantKind) -> tuple[str, ...]:
        """The names of one kind, each exact or with ``*`` at its end."""
        found: tuple[str, ...] = getattr(self, kind)
        return found

    def allows(self, use: ForeignUse) -> bool:
        """Whether this grant covers a use."""
        names = use.short_names if self.to == use.by else ()
        return any(_fits(pattern, name) for pattern in self.names(use.kind) for name in names)


class Grants(Document):
    """The grants of a namespace to others. An empty list takes all of them back."""

    grants: tuple[Grant, ...] = Field(max_length=MAX_GRANTS)

    def allows(self, use: ForeignUse) -> bool:
        """Whether a grant covers a use of what belongs to the namespace of this document."""
        return any(grant.allows(use) for grant in self.grants)

    def check_owner(self, namespace: str) -> None:
        """Raise ``invalid`` for a grant of a namespace to itself."""
        for number, grant in enumerate(self.grants):
            if grant.to == namespace:
                hint = "remove it: the documents of a namespace need no grant for what is in it"
                raise invalid(f"grants.{number}.to", "another namespace", namespace, hint)


def waiting_for(uses: tuple[ForeignUse, ...]) -> Why:
    """Why something waits that lacks the grants for these uses, with the next command. It names the namespaces whose
    grants are missing."""
    owners = dict.fromkeys(use.owner for use in uses)
    commands = " and ".join(f"sluice grants {owner}" for owner in owners)
    lacking = joined(
        Why.of(MISSING, "waits for a grant of ", mention("namespace", use.owner), f" to {use.what}") for use in uses
    )
    return lacking.then(f" (an administrator of {' and '.join(owners)} can give it: {commands})")


def missing_hint(owner: str) -> str:
    """What to do about a name in another namespace. The text is the same for an unknown name and for one that is not
    granted: it must not tell which."""
    return f"correct the name; if it is right, an administrator of {owner} can grant it: sluice grants {owner}"


def _check_name(kind: GrantKind, name: str, field: str) -> None:
    if kind == "events":
        if not _EVENT.fullmatch(name) or (name[-1] in "._:/-"):
            raise invalid(field, "an event type, or its beginning with *", name, "such as sales.paid, or sales.*")
        return
    of_app = kind in _OF_APP
    if not _FITTING[of_app].fullmatch(name):
        expected = "app.name without the namespace" if of_app else "a name without the namespace"
        hint = "such as core.clean, or core.* for all of an app" if of_app else "such as spark, or spark-*"
        raise invalid(field, f"{expected}, or its beginning with *", name, hint)


def _fits(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
