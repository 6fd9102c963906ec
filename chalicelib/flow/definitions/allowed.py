"""Check what documents and calls name against the allow-list of a namespace (O10), or without one, against what a
namespace may name by itself (O14)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from chalicelib.core.access import allowed
from chalicelib.core.access.allowed import NOT_BY_NAME, Allowed, Installation, Named
from chalicelib.core.changes import replace
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.names import SYSTEM
from chalicelib.core.rows.access import AllowedRow
from chalicelib.core.rows.run import Run
from chalicelib.core.targets import registry
from chalicelib.core.targets.target import Target
from chalicelib.flow.limits.policies import start_rate
from chalicelib.log import logger
from chalicelib.ports import Ports

Lists = dict[str, Allowed | None]


def check(ports: Ports, namespace: str, named: Iterable[Named], field: str = "", lately: bool = False) -> None:
    """Raise ``invalid`` for the first thing that a document below ``field`` names and its namespace may not use.
    ``lately``: by the list as this process has read it in the last seconds, where a read would cost too much."""
    if found := below(named, field):
        catalog, now = ports.catalog, ports.clock.now()
        row = catalog.allowed_lately(namespace, now) if lately else ports.rows.get(AllowedRow, namespace)
        is_shared = partial(catalog.is_shared_lately, now) if lately else partial(catalog.is_shared, namespace)
        by_name = any(each.kind not in NOT_BY_NAME for each in found)
        _check(ports, found, _parsed(row), namespace, by_name and _is_beside_others(ports, namespace, is_shared))


def below(named: Iterable[Named], field: str) -> list[Named]:
    """What is named below a field of a document."""
    return [replace(each, field=f"{field}.{each.field}".strip(".")) for each in named]


def check_target(ports: Ports, namespace: str, target: Mapping[str, Any], field: str, lately: bool = False) -> None:
    """The same for a target, or a probe, as its document names it: with the defaults of the stack where it names
    nothing. Raises ``invalid`` also for fields that no call can carry safely."""
    try:
        named = named_by(ports, target)
        of_type = registry.of_type(str(target["type"]))
        if of_type.has_model:
            ports.targets.check(target)
    except SluiceError as error:
        raise error.under(field) from None
    check(ports, namespace, named, field, lately)
    if of_type.needs_role and _lacks_role(ports, of_type, list_of(ports, namespace)):
        raise _needs_role(str(target["type"]), namespace).under(field)


def named_by(ports: Ports, target: Mapping[str, Any]) -> list[Named]:
    """What a target names, as its document has it, with the defaults of the stack where it names nothing."""
    of_type = registry.of_type(str(target["type"]))
    placed = of_type.model_validate(target).placed(start_rate(ports)).model_dump(mode="json")
    return list(of_type.named(placed))


def read_ahead(ports: Ports, runs: Iterable[Run]) -> None:
    """Read the lists of these runs now, so that a start within the next seconds does not have to."""
    now = ports.clock.now()
    for namespace in {run.workflow.partition(".")[0] for run in runs}:
        ports.catalog.allowed_lately(namespace, now)
    if has_tenants(ports):
        ports.catalog.is_shared_lately(now)


def refusals(ports: Ports, runs: Iterable[Run]) -> list[str | None]:
    """For each run that is about to be started, the reason why its target may no longer be called, or None. The
    namespace of the workflow decides: its document names the target."""
    lists: Lists = {}
    return [refusal(ports, run.workflow.partition(".")[0], run.request.target, lists) for run in runs]


def refusal(ports: Ports, namespace: str, target: Mapping[str, Any], lists: Lists | None = None) -> str | None:
    """The same for one call, such as that of a probe. ``lists`` are those that the caller has parsed, and keeps."""
    of_type = registry.of_type(str(target["type"]))
    lists = {} if lists is None else lists
    why = _reason(ports, namespace, lambda: of_type.named(target), lists)
    if why is None and _lacks_role(ports, of_type, lists[namespace]):
        missing = _needs_role(str(target["type"]), namespace)
        why = f"not allowed: {missing.field}: {missing.message}; {missing.hint}"
    return why


def refusal_of(ports: Ports, namespace: str, named: Iterable[Named]) -> str | None:
    """The reason why a namespace may not use one of these things, or None."""
    return _reason(ports, namespace, lambda: named, {})


def _reason(ports: Ports, namespace: str, read: Callable[[], Iterable[Named]], lists: Lists) -> str | None:
    now = ports.clock.now()
    if namespace not in lists:
        lists[namespace] = _parsed(ports.catalog.allowed_lately(namespace, now))
    # Like the list, it is not read in the block below: a table that cannot be read is no refusal.
    is_beside_others = _is_beside_others(ports, namespace, partial(ports.catalog.is_shared_lately, now))
    try:
        _check(ports, list(read()), lists[namespace], namespace, is_beside_others)
    except SluiceError as error:
        return f"not allowed: {error.field}: {error.message}; {error.hint}"
    return None


def _check(
    ports: Ports, named: list[Named], lists: Allowed | None, namespace: str, is_beside_others: bool
) -> None:  # fmt: skip
    """`allowed.check`. An installation that observes logs what it would refuse because it has several namespaces."""
    alone, is_enforced = installation(ports), ports.settings.authorization == "enforce"
    allowed.check(named, lists, namespace, replace(alone, is_shared=is_beside_others and is_enforced))
    if not is_beside_others or is_enforced:
        return
    try:
        allowed.check(named, lists, namespace, replace(alone, is_shared=True))
    except SluiceError as error:
        why = f"{error.field}: {error.message}"
        logger.warning("target would be refused", extra={"namespace": namespace, "why": why})


def _is_beside_others(ports: Ports, namespace: str, is_shared: Callable[[], bool]) -> bool:
    """Whether a namespace is limited by its name."""
    return has_tenants(ports) and namespace != SYSTEM and is_shared()


def has_tenants(ports: Ports) -> bool:
    """Whether several namespaces would be limited by their names. An installation that checks no rights limits none,
    and tests have no account that names could belong to."""
    return ports.settings.authorization != "off" and ports.settings.account != ""


def installation(ports: Ports) -> Installation:
    """What a check needs to know of this installation while it has one namespace."""
    settings = ports.settings
    return Installation(
        settings.account,
        settings.queue_endpoint,
        application=settings.emr_application_id,
        code=f"s3://{settings.control_bucket}/code/",
    )


def _lacks_role(ports: Ports, of_type: type[Target], lists: Allowed | None) -> bool:
    """Whether a target is called with a target role alone, and its namespace has none. Tests have no account whose
    roles could be assumed."""
    has_role = lists is not None and lists.target_role is not None
    return of_type.needs_role and not has_role and ports.settings.account != ""


def _needs_role(kind: str, namespace: str) -> SluiceError:
    hint = f"an administrator of the installation can set target_role: sluice allowed {namespace}"
    return invalid("type", "a target role of the namespace, with which alone such targets are called", kind, hint)


def list_of(ports: Ports, namespace: str) -> Allowed | None:
    """The allow-list of a namespace, as it is now."""
    return _parsed(ports.rows.get(AllowedRow, namespace))


def _parsed(row: AllowedRow | None) -> Allowed | None:
    return Allowed.model_validate(row.document) if row is not None else None
