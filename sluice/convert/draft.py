"""The app document that a reader builds, and the findings: the parts that it does not carry over, why, and what to
do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import yaml

from sluice.client import Document
from sluice.visible import escaped
from sluice.yaml12 import quoted_if_needed

WIDTH = 120  # columns of the document
FLOW_WIDTH = 100  # characters; an object or a list of at most this length is written in one line
UNKNOWN_POOL = "fill-in"  # no worker claims from this pool, so a workflow whose target is missing runs nothing
PARTS = ("datasets", "pools", "workflows", "schedules", "dags")


class NotCarried(Exception):
    """A part has no counterpart in Sluice. ``what`` is the part, ``todo`` what the user can do instead."""

    def __init__(self, what: str, why: str, todo: str) -> None:
        super().__init__(f"{what}: {why}")
        self.what, self.why, self.todo = what, why, todo


@dataclass(frozen=True, slots=True)
class Finding:
    """One point of the report. ``where`` is a line such as ``line 4``, or the name of a schedule or rule."""

    where: str
    what: str
    why: str
    todo: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}\n  why: {self.why}\n  do:  {self.todo}"


@dataclass
class Draft:
    """The parts of the app by name, in the order in which the reader found them.

    ``enable``: schedules that are active at their source get ``enabled: true``. Otherwise ``enabled`` is left out, and
    only those that are disabled at their source get ``enabled: false``.
    """

    namespace: str
    app: str
    source: str
    enable: bool = False
    parts: dict[str, dict[str, Any]] = field(default_factory=lambda: {part: {} for part in PARTS})
    findings: list[Finding] = field(default_factory=list)

    def add(self, part: str, name: str, body: Document) -> str:
        """Add a definition. Returns its name, with a number at its end if another definition has the name."""
        free = unique(name, self.parts[part])
        self.parts[part][free] = without_empty(body)
        return free

    def workflow(self, name: str, body: Document) -> str:
        """Add a workflow, unless the draft has the same one. Returns its name."""
        body = without_empty(body)
        for known, other in self.parts["workflows"].items():
            if other == body and (known == name or re.fullmatch(rf"{re.escape(name)}-\d+", known)):
                return str(known)
        return self.add("workflows", name, body)

    def unknown(self, where: str, name: str, what: str, **fields: Any) -> str:
        """Add a workflow whose target the user must fill in, and a finding for it. Returns the name of the workflow."""
        text = f"{what}: fill in the target"
        added = self.add("workflows", name, {"description": text[:1000], "target": unknown_target(), **fields})
        self.find(
            where,
            f"{what} became the workflow {added}, whose target is missing",
            "a target is an engine of AWS, a function, queue, topic, callback, call of AWS's API, or worker",
            f"replace the target of workflows.{added}; until then its runs wait in the pool {UNKNOWN_POOL}",
        )
        return added

    def mode(self, active: bool) -> bool | None:
        """The value of ``enabled``; None to leave it out."""
        if not active:
            return False
        return True if self.enable else None

    def find(self, where: str, what: str, why: str, todo: str) -> None:
        finding = Finding(where, what, why, todo)
        if finding not in self.findings:
            self.findings.append(finding)

    def lose(self, where: str, lost: NotCarried) -> None:
        self.find(where, lost.what, lost.why, lost.todo)

    def document(self) -> Document:
        """The app document, with a description that names the source."""
        parts = {name: part for name, part in self.parts.items() if part}
        described = f"Converted from {self.source}"
        return {"namespace": self.namespace, "app": self.app, "description": described, **parts}

    def text(self) -> str:
        """The document as YAML for ``sluice apply``, with each dollar sign doubled, because a single one begins a
        placeholder."""
        note = f"# Written by sluice convert from {self.source}. Read its report before you apply this file.\n"
        dumped = yaml.dump(_escaped(self.document()), Dumper=_Dumper, sort_keys=False, width=WIDTH, allow_unicode=True)
        return escaped(note + dumped)

    def report(self) -> str:
        """The findings as text, after a line that counts what was converted."""
        counts = ", ".join(_counted(name, len(part)) for name, part in self.parts.items() if part) or "nothing"
        points = len(self.findings)
        head = f"{self.source}: converted {counts}; {points} {'point' if points == 1 else 'points'} to read"
        return "\n".join([head, *map(str, self.findings)]) + "\n"

    def as_json(self) -> Document:
        return {"document": self.document(), "findings": [asdict(finding) for finding in self.findings]}


def unknown_target() -> Document:
    return {"type": "worker", "pool": UNKNOWN_POOL}


def name_of(text: str, fallback: str = "job") -> str:
    """A name that Sluice accepts: lower-case letters, digits, ``-`` and ``_``, at most 63."""
    cleaned = re.sub(r"[^a-z0-9_]+", "-", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", text).lower()).strip("-_")
    return cleaned[:63].rstrip("-_") or fallback


def unique(name: str, taken: Iterable[str]) -> str:
    known, number, free = set(taken), 2, name
    while free in known:
        free, number = f"{name[:60]}-{number}", number + 1
    return free


def without_empty(body: Document) -> Document:
    return {key: value for key, value in body.items() if value is not None and value not in ("", [], {})}


def span(seconds: float) -> str:
    """A duration such as ``1d12h`` or ``1m30s``."""
    rest, text = round(seconds * 1000), ""
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")):
        count, rest = divmod(rest, size)
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def _counted(part: str, number: int) -> str:
    return f"{number} {part if number > 1 else part[:-1]}"


def _escaped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _escaped(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_escaped(item) for item in value]
    return value.replace("$", "$$") if isinstance(value, str) else value


class _Dumper(yaml.SafeDumper):
    """YAML in the form of the examples: short lists and objects in one line, and no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        del indentless
        super().increase_indent(flow, False)


def _represent(dumper: _Dumper, value: Any) -> yaml.Node:
    # A definition is always a block; the values of its fields may be in one line.
    inner = not isinstance(value, dict) or not ({"workflow", "target", "nodes", "namespace"} & set(value))
    depth_free = isinstance(value, dict) and any(isinstance(item, dict) for item in value.values())
    short = inner and not depth_free and len(json.dumps(value, ensure_ascii=False)) <= FLOW_WIDTH
    if isinstance(value, dict):
        short = short or (set(value) == {"workflow"})
        return dumper.represent_mapping("tag:yaml.org,2002:map", value.items(), flow_style=short)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=short)


_Dumper.add_representer(str, quoted_if_needed)
_Dumper.add_representer(dict, _represent)
_Dumper.add_representer(list, _represent)
