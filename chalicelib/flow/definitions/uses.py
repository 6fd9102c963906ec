"""What the stored documents of a namespace use, and what it may not use any more once there are several (O14)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from chalicelib.core.access import proposal
from chalicelib.core.access.allowed import Allowed, Installation, Kind, Named, unlisted
from chalicelib.core.constraints.constraint import Use as Reference
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.ids import MESSAGE
from chalicelib.core.names import SYSTEM
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import Version
from chalicelib.core.triggers import tree
from chalicelib.core.why import Mention, mention, plain
from chalicelib.flow import lookup, many
from chalicelib.flow.definitions import allowed, of_kind
from chalicelib.flow.definitions.allowed import below
from chalicelib.flow.lookup import definitions_in
from chalicelib.log import logger
from chalicelib.ports import Ports

MAX_DOCUMENTS = 5_000  # of a namespace that are read: an API request has 29 s
AT_ONCE = 100
MAX_LISTED = 5  # uses that an error names


@dataclass(frozen=True, slots=True)
class Refused:
    """A use of a document, such as ``workflow demo.flights.clean``, and why it will be refused."""

    document: str
    field: str
    why: str


@dataclass(frozen=True, slots=True)
class Uses:
    """What a namespace uses: what it may not use any more with several namespaces, the list that covers it, and what
    that list leaves out. ``complete`` is false if the namespace has more documents than were read. A use of these might
    be refused if it is of a kind without a list, one of ``unlisted``."""

    namespace: str
    refused: tuple[Refused, ...]
    proposed: Mapping[str, Any]
    left_out: tuple[Refused, ...]
    complete: bool
    unlisted: tuple[Kind, ...]


Use = tuple[str, Named]  # a document, and what it names


def of_namespace(ports: Ports, namespace: str) -> Uses:
    """What the documents of a namespace use, among the first `MAX_DOCUMENTS`."""
    lookup.require(ports, "namespace", namespace)
    documents = list(islice(_documents(ports, namespace), MAX_DOCUMENTS + 1))
    complete = len(documents) <= MAX_DOCUMENTS
    uses = [(document, named) for document, each in documents[:MAX_DOCUMENTS] for named in each]
    present, alone = allowed.list_of(ports, namespace), allowed.installation(ports)
    proposed = proposal.propose((named for _, named in uses), present, namespace, alone, ports.settings.partition)
    refused = _newly_refused(uses, present, namespace, alone)
    covers, beside = Allowed.model_validate(proposed), replace(alone, is_shared=True)
    return Uses(
        namespace,
        tuple(_refusals(refused, present, namespace, beside)),
        proposed,
        tuple(_refusals(refused, covers, namespace, beside)),
        complete,
        () if complete else unlisted(present),
    )


def of_row(ports: Ports, row: Definition | Version) -> list[Use]:
    """What the row of a workflow, a message or a schedule uses; nothing for others."""
    if isinstance(row, Version):
        schedule = Schedule.model_validate(row.definition)
        return [(f"schedule {row.schedule}", named) for named in _of_schedule(ports, schedule)]
    if not of_kind.KINDS[row.kind].has_target:
        return []
    return [(_named(row.name), named) for named in _of_workflow(ports, row.document)]


def newly_refused(ports: Ports, namespace: str, uses: Sequence[Use], lists: Allowed | None) -> list[Refused]:
    """The uses that a namespace with these lists may have by itself, and not beside others."""
    alone = allowed.installation(ports)
    refused = _newly_refused(uses, lists, namespace, alone)
    return list(_refusals(refused, lists, namespace, replace(alone, is_shared=True)))


def before_another(ports: Ports, joining: str) -> list[Uses]:
    """What would be refused, or might be, of the only namespace if ``joining`` were created now. Nothing if there are
    several already, or if the installation checks no rights."""
    if not allowed.has_tenants(ports) or joining == SYSTEM or ports.catalog.is_shared():
        return []
    others = [row.name for row in definitions_in(ports, "namespace", "") if row.name not in (joining, SYSTEM)]
    found = [of_namespace(ports, name) for name in others]
    return [uses for uses in found if uses.refused or uses.unlisted]


def require_room(ports: Ports, joining: str) -> None:
    """Raise ``conflict`` if the only namespace uses what would be refused once ``joining`` exists, or may do so in
    documents that are too many to read. An installation that observes logs it."""
    for uses in before_another(ports, joining):
        space = mention("other", uses.namespace)
        got = Mention(_got(uses), "other", uses.namespace)
        message = plain("expected that ", space, f" uses only what it may use beside {joining}, got ", got)
        of_kinds = f" with lists, which may be empty, of {', '.join(uses.unlisted)}" if uses.unlisted else ""
        list_it = f" an allow-list of what it uses{of_kinds}, and repeat the request: sluice allowed "
        hint = plain("give ", space, list_it, space, " --propose")
        if ports.settings.authorization == "enforce":
            raise SluiceError("conflict", message, None, hint)
        logger.warning("namespace would be refused", extra={"namespace": joining, "why": message.text})


def _got(uses: Uses) -> str:
    """What stands against another namespace."""
    refused = listed(uses.refused) if uses.refused else ""
    unread = f"more than {MAX_DOCUMENTS} documents, of which the others were not read" if uses.unlisted else ""
    return ", and ".join(filter(None, (refused, unread)))


def listed(refused: Sequence[Refused]) -> str:
    """Some of these uses, in words."""
    some = ", ".join(f"{each.field} of {each.document}" for each in refused[:MAX_LISTED])
    more = f" and {len(refused) - MAX_LISTED} more" if len(refused) > MAX_LISTED else ""
    return f"{some}{more}, which would be refused"


def _newly_refused(uses: Sequence[Use], lists: Allowed | None, namespace: str, alone: Installation) -> list[Use]:
    return [use for use in uses if proposal.is_newly_refused(use[1], lists, namespace, alone)]


def _refusals(
    uses: Sequence[Use], lists: Allowed | None, namespace: str, installation: Installation
) -> Iterator[Refused]:
    for document, named in uses:
        error = proposal.refusal(named, lists, namespace, installation)
        if error is not None:
            yield Refused(document, named.field, error.message)


def _documents(ports: Ports, namespace: str) -> Iterator[tuple[str, list[Named]]]:
    """Each document of a namespace that may name something, with what it names. The few with targets are first, since
    a namespace may have more schedules than are read."""
    apps = [app.name for app in definitions_in(ports, "app", namespace)]
    for read in (_workflows, _messages, _schedules):
        for app in apps:
            yield from read(ports, app)


def _workflows(ports: Ports, app: str) -> Iterator[tuple[str, list[Named]]]:
    for row in definitions_in(ports, "workflow", app):
        yield f"workflow {row.name}", _of_workflow(ports, row.document)
    own = ports.rows.get(Definition, "workflow", f"{app}.{MESSAGE}")
    if own is not None:
        yield _named(own.name), below(_of_target(ports, own.document["target"]), "default_target")


def _named(workflow: str) -> str:
    """A stored workflow in words. The default target of an app and the target of a message are workflows, too."""
    app, mark, message = workflow.partition(f".{MESSAGE}")
    if not mark:
        return f"workflow {workflow}"
    return f"message {app}.{message}" if message else f"default target of {app}"


def _messages(ports: Ports, app: str) -> Iterator[tuple[str, list[Named]]]:
    names = (listing.schedule for listing in of_kind.messages_of(ports, app))
    while part := list(islice(names, AT_ONCE)):
        read = ports.prefetch.read(ports, [kinds.key(Definition, "workflow", name) for name in part])
        for name in part:
            own = read.rows.get(Definition, "workflow", name)
            yield _named(name), [] if own is None else _of_target(ports, own.document["target"])


def _schedules(ports: Ports, app: str) -> Iterator[tuple[str, list[Named]]]:
    for name, schedule in many.schedules_in(ports, app):
        yield f"schedule {name}", list(_of_schedule(ports, schedule))


def _of_workflow(ports: Ports, document: Mapping[str, Any]) -> list[Named]:
    found = _of_target(ports, document["target"])
    application = (document.get("resources") or {}).get("application")
    if application is not None:
        found.append(Named("applications", application, "resources.application"))
    for number, rule in enumerate(document.get("notify", ())):
        found += below(_of_target(ports, rule["to"], ""), f"notify.{number}.to")
    return found


def _of_schedule(ports: Ports, schedule: Schedule) -> Iterator[Named]:
    for number, rule in enumerate(schedule.notify):
        yield from below(_of_target(ports, rule.to.model_dump(mode="json"), ""), f"notify.{number}.to")
    if schedule.resources is not None and schedule.resources.application is not None:
        yield Named("applications", schedule.resources.application, "resources.application")
    for leaf in tree.leaves(schedule.trigger):
        yield from below(leaf.trigger.named(), "trigger")
    for number, constraint in enumerate(schedule.constraints):
        for use in constraint.references():
            yield from below(_of_reference(ports, use), f"constraints.{number}")


def _of_reference(ports: Ports, use: Reference) -> list[Named]:
    match use.kind:
        case "application":
            return [Named("applications", use.of, use.field)]
        case "metric":
            return [Named("metrics", use.of, use.field)]
        case "target":
            return _of_target(ports, use.of, use.field)
    return []


def _of_target(ports: Ports, target: Mapping[str, Any], field: str = "target") -> list[Named]:
    """What a target names; nothing for one that no call can carry safely, which is refused today."""
    try:
        return below(allowed.named_by(ports, target), field)
    except SluiceError:
        return []
