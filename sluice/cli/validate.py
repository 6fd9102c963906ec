"""``sluice validate``: check app documents without an API, by the service's own code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from sluice import render
from sluice.cli import frame
from sluice.client import Document
from sluice.errors import Problem, WrongUsage

PARTS = ("workflows", "schedules", "dags", "datasets", "policies", "pools", "calendars", "messages")


def validate(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="App documents, YAML or JSON; - for stdin.")],
    settings: frame.Settings = None,
    value_files: frame.ValueFiles = None,
    as_json: frame.Json = False,
) -> None:
    """Check app documents offline, and report every problem with its file and line.

    The files may refer to each other. The command needs the extra testing: pip install 'sluice[testing]'.
    """
    from sluice import documents  # imported here: it loads the YAML parser
    from sluice.cli.apply import name_of, placed

    values = frame.values_of(value_files, settings)
    check = _checker()
    sources: list[documents.Source] = []
    problems: list[Problem] = []
    for file in files:
        try:
            source = documents.source(file, values)
            name_of(file, source.document)
        except WrongUsage as wrong:
            problems += wrong.problems
        else:
            sources.append(source)
    reports = list(zip(sources, check([source.document for source in sources], frame.now()), strict=True))
    for source, found in reports:
        problems += [placed(problem, source) for problem in found.problems]
    if problems:
        raise WrongUsage.of(problems)
    items = [
        {
            "file": source.path,
            "app": name_of(source.path, source.document),
            "unchecked": [_as_json(placed(problem, source)) for problem in found.elsewhere],
        }
        for source, found in reports
    ]
    if as_json:
        render.machine({"items": items, "next_cursor": None})
        return
    for (source, found), item in zip(reports, items, strict=True):
        _show(source.path, str(item["app"]), source.document, [placed(each, source) for each in found.elsewhere])


def _checker() -> Callable[[Sequence[Document], Any], list[Any]]:
    """The check of the service, which is in the distribution. Its requirements are an extra."""
    try:
        from sluice.testing import validate as service
    except ImportError as missing:
        hint = "pip install 'sluice[testing]'; or let the API check the file: sluice apply --dry-run FILE"
        raise WrongUsage(f"expected what checks documents offline, got: {missing}", None, hint) from None
    return service.check


def _show(path: str, app: str, document: Document, elsewhere: Sequence[Problem]) -> None:
    counts = [_counted(kind, len(document[kind])) for kind in PARTS if document.get(kind)]
    about = f"  {', '.join(counts)}" if counts else ""
    render.stdout().print(Text.assemble(f"{path}: ", (app, "bold"), (" is valid", "green"), about), soft_wrap=True)
    for problem in elsewhere:
        render.note(f"not checked: {problem.field}: {problem.message}; no file defines it, so the API checks it")


def _counted(kind: str, number: int) -> str:
    one = "policy" if kind == "policies" else kind.removesuffix("s")
    return f"{number} {one if number == 1 else kind}"


def _as_json(problem: Problem) -> Document:
    return {"code": problem.code, "message": problem.message, "field": problem.field, "hint": problem.hint}
