"""``sluice quotas``: the quotas of a namespace, and what it uses (O9)."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sluice import render
from sluice.cli import frame, namespace_document
from sluice.client import Document

QUOTAS = ("schedules", "fires_per_second", "documents", "waiting_jobs", "requests_per_second")


def quotas(
    namespace: Annotated[str, typer.Argument(metavar="NAMESPACE", help="The namespace, such as demo.")],
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="Replace the quotas by those of this file, YAML or JSON."),
    ] = None,
    as_json: frame.Json = False,
) -> None:
    """Show the quotas of a namespace and what it uses, or replace them."""
    namespace_document.show_or_replace(namespace, "quotas", "the quotas", file, as_json, _show)


def _show(view: Document) -> None:
    out = render.stdout()
    render.title(out, "quotas of namespace", view["name"])
    rows: list[tuple[render.Cell, ...]] = [
        (name, _number(view["used"].get(name)), _number(view["effective"].get(name)), _origin(view, name))
        for name in QUOTAS
    ]
    render.table(out, ("QUOTA", "USED", "AT MOST", "FROM"), rows)


def _number(value: Any) -> str | None:
    return None if value is None else f"{value:g}"


def _origin(view: Any, name: str) -> str:
    return "this namespace" if view.get(name) is not None else "the installation"
