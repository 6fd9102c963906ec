"""``sluice convert``: schedules of another scheduler as an app document, with a report (L20)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, TextIO

import typer

from sluice import checks, names, render
from sluice.cli import frame
from sluice.errors import WrongUsage
from sluice.visible import visible

SOURCES = ("crontab", "eventbridge", "airflow", "mwaa", "cdap")
# The files of the system whose lines name a user.
SYSTEM_FILES = ("/etc/crontab", "/etc/cron.d/")


def convert(
    source: Annotated[str, typer.Argument(metavar="FROM", help="crontab, eventbridge, airflow, mwaa or cdap.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="What to convert; - for stdin.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Where the document goes, instead of stdout.")
    ] = None,
    report: Annotated[
        str | None, typer.Option("--report", metavar="FILE", help="Where the report goes, instead of stderr.")
    ] = None,
    namespace: frame.Namespace = None,
    app: Annotated[
        str | None, typer.Option("--app", "-a", metavar="[NS.]APP", help="The app; by default named as the file.")
    ] = None,
    zone: Annotated[
        str | None, typer.Option("--zone", metavar="ZONE", help="The time zone, where the file names none.")
    ] = None,
    system: Annotated[
        bool | None,
        typer.Option("--system/--user", help="Whether lines of the crontab name a user; by default, by its path."),
    ] = None,
    enabled: Annotated[
        bool, typer.Option("--enabled", metavar="", help="Enable the schedules that are active there.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print document and findings as JSON and nothing else.")
    ] = False,
) -> None:
    """Convert schedules of another scheduler into an app document, and report what it does not carry over.

    It executes nothing, sends nothing, and needs no API. The schedules are disabled until you enable them.
    """
    # Imported here because a YAML parser is slow to load and only this command needs it.
    from sluice.convert import airflow, cdap, crontab, eventbridge
    from sluice.convert.draft import Draft, name_of

    kind = checks.one_of(source.lower(), SOURCES, "FROM")
    known_zone = _zone(zone)
    text = _read(file)
    stem = "app" if file == "-" else name_of(Path(file).stem, "app")
    in_namespace, in_app = names.place(namespace, app)
    shown = "stdin" if file == "-" else Path(file).name
    draft = Draft(in_namespace or "default", in_app or stem, shown, enabled)
    for field, given in (("--namespace", draft.namespace), ("--app", draft.app)):
        if name_of(given) != given:
            raise WrongUsage("expected a name of lower-case letters, digits, - and _", field, f"got {given!r}")
    if kind == "crontab":
        by_path = any(each in str(Path(file).absolute()) for each in SYSTEM_FILES)
        crontab.convert(text, draft, known_zone, by_path if system is None else system)
    elif kind == "eventbridge":
        eventbridge.convert(text, draft)
    elif kind == "airflow":
        airflow.convert(text, draft, known_zone)
    elif kind == "mwaa":
        airflow.convert_mwaa(text, draft, known_zone)
    else:
        cdap.convert(text, draft, known_zone)
    if as_json:
        render.machine(draft.as_json())
        return
    _write(report, visible(draft.report()), sys.stderr)
    _write(output, draft.text(), sys.stdout)


def _zone(name: str | None) -> str | None:
    from sluice import zones

    if name and zones.zone(name) is None:
        hint = "write its name in the IANA database, such as Europe/Paris"
        raise WrongUsage(f"expected a time zone, got {name!r}", "--zone", hint)
    return name or None


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise WrongUsage(f"expected a readable file, got {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise WrongUsage(f"expected text in UTF-8, got other bytes in {file}") from None


def _write(file: str | None, text: str, otherwise: TextIO) -> None:
    if file is None:
        print(text, end="", file=otherwise)
        return
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise WrongUsage(f"expected a file that can be written, got {file}: {error.strerror}") from None
