"""What AWS supports, and until when; former defaults of the template's parameters. `support.yaml` has the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from infra import yaml_tags

FILE = Path(__file__).with_name("support.yaml")
AHEAD = 180  # days; AWS announces the end of a Lambda runtime as early


@dataclass(frozen=True)
class Version:
    """A runtime of Lambda or a release of EMR: the last day of its support, and the page that says so."""

    name: str
    until: date
    source: str
    spark: str = ""


def runtimes() -> dict[str, Version]:
    """The Python runtimes of Lambda, by their identifier."""
    return {name: Version(name, **each) for name, each in _data()["runtimes"].items()}


def labels() -> dict[str, Version]:
    """The releases of EMR, by their label."""
    return {name: Version(name, **each) for name, each in _data()["emr"].items()}


def former_defaults() -> dict[str, list[str]]:
    """Values that were defaults of the template's parameters."""
    return {name: [str(value) for value in values] for name, values in _data()["former"].items()}


def ending(used: Iterable[Version], known: Mapping[str, Version], today: date) -> Iterator[str]:
    """A sentence for each version whose support ends within `AHEAD` days or has ended, with what to do."""
    for version in used:
        days = (version.until - today).days
        if days >= AHEAD:
            continue
        when = f"ends on {version.until}, in {days} days" if days >= 0 else f"ended on {version.until}"
        longer = [each for each in known.values() if (each.until - today).days >= AHEAD]
        instead = " or ".join(f"{each.name} ({each.until})" for each in longer) or "a newer one"
        yield (
            f"{version.name}: its support {when} ({version.source}). Use {instead} instead. If AWS has moved the date, "
            f"correct infra/support.yaml."
        )


def behind(kept: Mapping[str, str], defaults: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """The parameters that keep a former default: name, value, and the default now."""
    former = former_defaults()
    for name, value in sorted(kept.items()):
        if value != defaults.get(name, value) and value in former.get(name, ()):
            yield name, value, defaults[name]


@cache
def _data() -> dict[str, Any]:
    return yaml_tags.load(FILE.read_text())
