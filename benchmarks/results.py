"""`benchmarks/results.json`: the last measurements by key. A measurement replaces its own key only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.machine import Origin

FILE = Path(__file__).with_name("results.json")


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


def write(results: dict[str, Any], file: Path = FILE) -> None:
    file.write_text(json.dumps(results, indent=2) + "\n")
