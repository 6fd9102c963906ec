"""Conversions as a user runs them, and their results as the service reads them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from typer.testing import CliRunner

from chalicelib.core.dags.compile import compiled
from chalicelib.core.definitions.app import App
from sluice import documents
from sluice.cli import app as sluice

FILES = Path(__file__).parent / "files"


class Converted(NamedTuple):
    document: str
    report: str


def converted(*args: str | Path, given: str | None = None) -> Converted:
    """The output of ``sluice convert`` with these arguments."""
    result = CliRunner().invoke(sluice, ["convert", *map(str, args)], input=given, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return Converted(result.stdout, result.stderr)


def accepted(text: str, folder: Path) -> App:
    """The document as the service reads it: parsed as by ``sluice apply``, validated, and with full names."""
    file = folder / "app.yaml"
    file.write_text(text)
    app = App.model_validate(documents.load(str(file)))
    for schedule in app.schedules.values():
        schedule.definition().resolved("demo", "app", 1_700_000_000_000)
    for name, dag in app.dags.items():
        compiled(f"demo.app.{name}", dag.definition())
    return app
