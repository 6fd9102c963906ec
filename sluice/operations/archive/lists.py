"""Compare what arriving documents use with what their namespaces may use in an installation with several (O14)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from chalicelib.core.access.allowed import Allowed
from chalicelib.core.errors import SluiceError
from chalicelib.core.names import SYSTEM
from chalicelib.core.rows.access import AllowedRow
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import ScheduleState, Version
from chalicelib.flow.definitions import allowed, uses
from chalicelib.flow.definitions.uses import Refused
from chalicelib.flow.lookup import definitions_in
from chalicelib.log import logger
from chalicelib.ports import Ports
from sluice.operations.rules.owner import namespace_in


def check(ports: Ports, arriving: Callable[[], Iterable[object]]) -> None:
    """Raise ``conflict`` if a namespace arrives beside others and uses what would be refused here, with the list that
    it brings. ``arriving`` reads the rows. An installation that observes logs it."""
    if not allowed.has_tenants(ports):
        return
    lists: dict[str, Allowed] = {}
    present: set[tuple[str, int]] = set()
    namespaces = {row.name for row in definitions_in(ports, "namespace", "")}
    for row in arriving():
        match row:
            case AllowedRow():
                lists[row.namespace] = Allowed.model_validate(row.document)
            case ScheduleState() if row.exists:
                present.add((row.schedule, row.version))
            case Definition(kind="namespace"):
                namespaces.add(row.name)
    if len(namespaces - {SYSTEM}) < 2:
        return
    refused: dict[str, list[Refused]] = {}
    for row in arriving():
        if isinstance(row, Definition) or (isinstance(row, Version) and (row.schedule, row.version) in present):
            name = namespace_in(row.name if isinstance(row, Definition) else row.schedule)
            refused.setdefault(name, []).extend(
                uses.newly_refused(ports, name, uses.of_row(ports, row), lists.get(name))
            )
    for name in sorted(refused.keys() - {SYSTEM}):
        if refused[name]:
            _refuse(ports, name, refused[name])


def _refuse(ports: Ports, namespace: str, refused: list[Refused]) -> None:
    message = f"expected that {namespace} uses only what it may use beside others, got {uses.listed(refused)}"
    hint = (
        f"in the source, give {namespace} an allow-list of these (sluice allowed {namespace} --propose), and export "
        "again; or import while Authorization is observe, and give it the list here"
    )
    if ports.settings.authorization == "enforce":
        raise SluiceError("conflict", message, "namespaces", hint)
    logger.warning("namespace would be refused", extra={"namespace": namespace, "why": message})
