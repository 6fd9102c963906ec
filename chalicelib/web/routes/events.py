"""Routes of what producers send: custom events (T11), also as CloudEvents (E11), and the partitions of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NotRequired

from chalice.app import Request, Response

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import invalid
from chalicelib.core.events.cloudevents import BATCH, STRUCTURED
from chalicelib.core.instants import parse_instant
from chalicelib.core.rows.event import Event
from chalicelib.core.views import View
from chalicelib.flow.definitions.store import get
from chalicelib.flow.ingest.objects import register_values
from chalicelib.flow.ingest.outbox import Envelope, of_cloudevent, post
from chalicelib.flow.lookup import require
from chalicelib.flow.views import partitions
from chalicelib.flow.views.views import partition_view
from chalicelib.web import unseen
from chalicelib.web.access import require_events, sees
from chalicelib.web.bodies import Events, NewPartition
from chalicelib.web.cloudevents import cloudevents
from chalicelib.web.http import Json, answer, body, document, number, parse, query, request_id, validated
from chalicelib.web.paging import DEFAULT_LIMIT, MAX_LIMIT, listing
from chalicelib.wiring import ports


class AcceptedEventView(View):
    id: str
    type: str
    event_id: str
    source: NotRequired[str]


class AcceptedEventsView(View):
    accepted: list[AcceptedEventView]


def post_events(request: Request, ns: str) -> Response:
    """Post custom events. Sluice stores each event before it answers. Events with the same type and id count once.

    A CloudEvent (structured or binary mode) or a batch of them counts once under its source and id; one that is wrong
    refuses the whole batch. ``id`` in the answer is the sender's id, or one that Sluice generated. ``event_id`` is the
    id that runs show. ``source`` is that of a CloudEvent."""
    require(ports(), "namespace", ns)
    given = cloudevents(request)
    envelopes = _sent(request) if given is None else list(map(of_cloudevent, given))
    require_events(request, ns, tuple(envelope.kind for envelope in envelopes))
    events = post(ports(), ns, envelopes)
    return answer(AcceptedEventsView(accepted=list(map(_accepted, envelopes, events))), 202)


def _sent(request: Request) -> list[Envelope]:
    """The events of a request in the format of this API."""
    given, made = body(request), request_id(request)
    if "specversion" in given:
        hint = f"send a CloudEvent with Content-Type: {STRUCTURED}, a list of them with Content-Type: {BATCH}"
        raise invalid("Content-Type", f"{STRUCTURED} for a CloudEvent", request.headers.get("content-type"), hint)
    return [
        Envelope(
            kind=event.type,
            source=event.id or f"{made}/{number}",
            payload=event.payload,
            at=parse_instant(event.timestamp) if event.timestamp is not None else None,
        )
        for number, event in enumerate(validated(Events, given).events)
    ]


def _accepted(envelope: Envelope, event: Event) -> AcceptedEventView:
    view = AcceptedEventView(type=envelope.kind, id=envelope.source, event_id=event.id)
    return view if envelope.producer is None else {**view, "source": envelope.producer}


def register_partition(request: Request, name: str) -> Response:
    """Register a partition as ready. Registering it again has no effect."""
    dataset = _dataset(name)
    content = parse(NewPartition, request).model_dump()
    return document(partition_view(register_values(ports(), name, dataset, content), dataset), 201)


def list_partitions(request: Request, name: str) -> Json:
    """List the partitions of a dataset that are ready. They come in the order of their values as text. With ``from`` or
    ``to``, numbers compare as numbers, the answer is one page, and ``at_least`` is true if there are more."""
    dataset = _dataset(name)
    first, last, order = query(request, "from"), query(request, "to"), query(request, "order") or "asc"
    if order not in ("asc", "desc"):
        raise invalid("order", "asc or desc", order, "asc begins with the first partition, desc with the last")
    forward, view = order == "asc", partial(partition_view, dataset=dataset)
    if first is None and last is None:
        page = listing(request, partial(ports().catalog.partitions, name, forward=forward), view)
        items = _with_late(request, name, dataset, page["items"])
        return {**page, "items": items, "at_least": page["next_cursor"] is not None}
    if query(request, "cursor") is not None:
        raise invalid("cursor", "no cursor with from or to", "a cursor", "move from or to instead")
    found, cut = partitions.between(ports(), name, dataset.keys, first, last)
    limit = number(request, "limit", DEFAULT_LIMIT, MAX_LIMIT)
    shown = (found if forward else found[::-1])[:limit]
    items = _with_late(request, name, dataset, list(map(view, shown)))
    return {"items": items, "next_cursor": None, "at_least": cut or len(found) > limit}


def _with_late(request: Request, name: str, dataset: Dataset, items: Sequence[Json]) -> list[Json]:
    return unseen.late(partitions.with_late(ports(), name, dataset, items), sees(request))


def get_partition(request: Request, name: str) -> Json:
    """Read one partition, ready or not. The answer has the jobs that count it or wait for it, and the runs that it has
    led to. It leaves out those of namespaces that the signer may not read."""
    dataset, text = _dataset(name), query(request, "values")
    values = partitions.values_of(dataset.keys, text, "values")
    if len(values) != len(dataset.keys):
        raise invalid("values", f"a value for each of the keys {'/'.join(dataset.keys)}", text, "such as 2013/1/4")
    return unseen.partition(partitions.one(ports(), name, dataset, values), sees(request))


def _dataset(name: str) -> Dataset:
    return Dataset.model_validate(get(ports(), "dataset", name).document)
