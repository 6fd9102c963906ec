"""`benchmarks/results.json`: the last measurements by key. A measurement replaces its own key only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.machine import Origin

FILE = Path(__file__).with_name("results.json")
# The keys of the predictions of `aws_model`, by what is assumed of AWS.
PREDICTIONS = {"usual": "aws_model", "pessimistic": "aws_model_pessimistic"}


def read(file: Path = FILE) -> dict[str, Any]:
    """All results so far; empty without any measurement."""
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    return found


def merge(present: dict[str, Any], measured: dict[str, Any], origin: Origin) -> dict[str, Any]:
    """The results with some keys replaced. `measured_at`, `machine` and `versions` are those of the last measurement;
    `origins` has them for each key, because other keys may come from earlier commits."""
    origins = present.get("origins", {}) | dict.fromkeys(measured, origin.measured_at)
    about = {"measured_at": origin.measured_at, "machine": origin.machine, "versions": origin.versions}
    return {**about, **{k: v for k, v in present.items() if k not in about}, **measured, "origins": origins}


def predictions(found: Mapping[str, Any], group: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each scenario of a group: what is assumed, and its figures. The usual assumptions come first."""
    played = {name: found.get(key, {}).get(group, ()) for name, key in PREDICTIONS.items()}
    for about in dict.fromkeys(one["about"] for entries in played.values() for one in entries):
        yield from ((name, one) for name, entries in played.items() for one in entries if one["about"] == about)


def write(results: dict[str, Any], file: Path = FILE) -> None:
    file.write_text(json.dumps(results, indent=2) + "\n")
