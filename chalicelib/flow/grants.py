"""Read what other namespaces grant, and compare it with what a document uses of them (O9).

Nothing is read for a document that uses nothing of others, and nothing in an installation that checks no rights. An
installation that observes logs what it would refuse.
"""

from __future__ import annotations

from collections.abc import Iterable

from chalicelib.core import errors
from chalicelib.core.access.grants import ForeignUse, GrantKind, Grants, missing_hint, parse_use
from chalicelib.core.definitions.foreign import NOTHING, UsedGrants
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.run import Run
from chalicelib.log import logger
from chalicelib.ports import Ports

Rows = dict[str, GrantsRow | None]


def used_of(ports: Ports, uses: Iterable[ForeignUse], known: Rows | None = None) -> UsedGrants:
    """Compare uses with the present grants. ``known`` are rows that the caller has read, and keeps."""
    wanted = tuple(uses)
    if not wanted or ports.settings.authorization == "off":
        return NOTHING
    read: Rows = {}
    for owner in dict.fromkeys(use.owner for use in wanted):
        if known is None or owner not in known:
            read[owner] = ports.rows.get(GrantsRow, owner)
        else:
            read[owner] = known[owner]
    if known is not None:
        known |= read
    documents = {owner: Grants.model_validate(row.document) for owner, row in read.items() if row is not None}
    missing = tuple(use for use in wanted if use.owner not in documents or not documents[use.owner].allows(use))
    if ports.settings.authorization == "enforce":
        return UsedGrants(wanted, read, missing)
    for use in missing:
        why = f"{use.owner} does not let {use.by} {use.what}"
        logger.warning("grant would be missing", extra={"namespace": use.by, "why": why})
    return NOTHING


def of_run(ports: Ports, run: Run) -> UsedGrants:
    """How the uses that a claim has relied on stand now."""
    return used_of(ports, [parse_use(text) for text in run.uses]) if run.uses else NOTHING


def require(ports: Ports, uses: Iterable[ForeignUse], field: str) -> None:
    """Raise ``unknown_reference`` for the first use without a grant, as if the name did not exist."""
    for use in used_of(ports, uses).missing:
        raise _hidden(field, _KIND_OF[use.kind], use)


def unknown(ports: Ports, by: str, field: str, kind: str, name: str, known: Iterable[str] = ()) -> SluiceError:
    """The error for a name that does not exist. About a name in another namespace it says no more than `require`."""
    owner = name.partition(".")[0]
    if owner == by or ports.settings.authorization != "enforce":
        return errors.unknown_reference(field, kind, name, known)
    return _hidden(field, kind, ForeignUse("run", name, by))


def _hidden(field: str, kind: str, use: ForeignUse) -> SluiceError:
    error = errors.unknown_reference(field, kind, use.name)
    return SluiceError(error.code, error.said, field, missing_hint(use.owner))


# What a use names, in the error for a name that nothing has.
_KIND_OF: dict[GrantKind, str] = {
    "run": "workflow",
    "follow": "workflow or schedule",
    "context": "workflow",
    "datasets": "dataset",
    "events": "event type",
    "pools": "pool",
    "policies": "policy",
}
