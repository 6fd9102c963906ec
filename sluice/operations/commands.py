"""The commands of `sluice.cli.operations`, by the service's own code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import boto3

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import MINUTE
from sluice.errors import ApiRefused
from sluice.operations import listings
from sluice.operations.archive import export as exports
from sluice.operations.archive import give_up, load
from sluice.operations.files import archive
from sluice.operations.installation import Installation
from sluice.operations.repair import steps
from sluice.operations.repair.repair import Finding, Repair, Unknown
from sluice.operations.rules.manifest import Manifest, Source

Tell = Callable[[str, int], None]
MARGIN = MINUTE  # a restore is exact to the second; clocks and invocations are not


def now() -> int:
    return round(datetime.now(UTC).timestamp() * 1000)


def refused(error: SluiceError) -> ApiRefused:
    """A refusal of the service, as the command line reports it."""
    return ApiRefused(error.status, error.code, error.message, error.field, error.hint)


def freeze(stack: str) -> int:
    """Let no Lambda of a stack begin. Returns how many there are."""
    return Installation.of(stack, boto3.Session()).freeze()


def unfreeze(stack: str) -> int:
    """Let the Lambdas of a stack run again. Returns how many were frozen."""
    return Installation.of(stack, boto3.Session()).unfreeze()


def export(
    stack: str, to: str, namespaces: Sequence[str], move: bool, tables: Mapping[str, str], tell: Tell
) -> Manifest:
    session = boto3.Session()
    installation = Installation.of(stack, session, tables)
    if move:
        installation.require_frozen()
    settings, files, copies = installation.settings, archive(to, session), installation.copies()
    source = Source(
        catalog=settings.catalog_table,
        jobs=settings.jobs_table,
        runs=settings.runs_table,
        lake=settings.lake_bucket,
        control=settings.control_bucket,
    )
    try:
        made = _unfinished_move(files) if move else None
        made = made or exports.export(copies, files, namespaces, source, now(), tell)
        if move:
            made = give_up.give_up(copies, files, installation.ports())
        return made
    except SluiceError as error:
        raise refused(error) from None


def _unfinished_move(files: Any) -> Manifest | None:
    """The export of a move that broke off while the source gave its rows up."""
    if files.text(give_up.STARTED) is None:
        return None
    return Manifest.model_validate_json(files.text("manifest.json"))


def repair(stack: str, restored_to: int, unknown: Unknown, dry_run: bool) -> list[Finding]:
    """Repair the tables of a stack, or say what a repair would do. ``restored_to`` is in ms."""
    installation = Installation.of(stack, boto3.Session())
    if not dry_run:
        installation.require_frozen()
    ports, since = installation.ports(), restored_to - MARGIN
    found: list[Finding] = []

    def on_missing(application: str) -> None:
        found.append(Finding("EMR application", application, "left out: it does not exist, so no run of it is known"))

    emr: Any = ports.targets.of("emr_serverless")
    began = listings.started_since(emr, installation.settings.all_emr_applications, since, on_missing)
    changed = partial(listings.changed, installation.session.client("s3"))
    try:
        return steps.run(Repair(ports, installation.copies(), since, began, changed, unknown, dry_run, found))
    except SluiceError as error:
        raise refused(error) from None


def import_(stack: str, address: str, buckets: Mapping[str, str], copy: bool, tell: Tell) -> Manifest:
    session = boto3.Session()
    installation = Installation.of(stack, session)
    files, settings, copies = archive(address, session), installation.settings, installation.copies()
    try:
        made = load.known(copies, files)
        own = {made.source.lake: settings.lake_bucket, made.source.control: settings.control_bucket, **buckets}
        by = session.client("sts").get_caller_identity()["Arn"]
        return load.load(copies, files, stack, own, installation.ports(), copy, tell, by)
    except SluiceError as error:
        raise refused(error) from None
