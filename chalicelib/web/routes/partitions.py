"""Routes of the partitions of a dataset."""

from __future__ import annotations

from functools import partial

from chalice.app import Request, Response

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import invalid
from chalicelib.flow.definitions.store import get
from chalicelib.flow.ingest.objects import register_values
from chalicelib.flow.views import partitions
from chalicelib.flow.views.views import partition_view
from chalicelib.web import unseen
from chalicelib.web.access import sees
from chalicelib.web.bodies import NewPartition
from chalicelib.web.http import Json, document, number, parse, query
from chalicelib.web.paging import DEFAULT_LIMIT, MAX_LIMIT, listing
from chalicelib.wiring import ports


def register_partition(request: Request, ns: str, name: str) -> Response:
    """Register a partition as ready. Registering it again has no effect."""
    full = f"{ns}.{name}"
    dataset = Dataset.model_validate(get(ports(), "dataset", full).document)
    content = parse(NewPartition, request).model_dump()
    return document(partition_view(register_values(ports(), full, dataset, content)), 201)


def list_partitions(request: Request, ns: str, name: str) -> Json:
    """List the partitions of a dataset that are ready. They come in the order of their values as text. With ``from`` or
    ``to``, numbers compare as numbers, the answer is one page, and ``at_least`` is true if there are more."""
    full = f"{ns}.{name}"
    dataset = Dataset.model_validate(get(ports(), "dataset", full).document)
    first, last, order = query(request, "from"), query(request, "to"), query(request, "order") or "asc"
    if order not in ("asc", "desc"):
        raise invalid("order", "asc or desc", order, "asc begins with the first partition, desc with the last")
    forward = order == "asc"
    if first is None and last is None:
        page = listing(request, partial(ports().catalog.partitions, full, forward=forward), partition_view)
        return {**page, "at_least": page["next_cursor"] is not None}
    if query(request, "cursor") is not None:
        raise invalid("cursor", "no cursor with from or to", "a cursor", "move from or to instead")
    found, cut = partitions.between(ports(), full, dataset.keys, first, last)
    limit = number(request, "limit", DEFAULT_LIMIT, MAX_LIMIT)
    shown = (found if forward else found[::-1])[:limit]
    return {
        "items": [partition_view(row) for row in shown],
        "next_cursor": None,
        "at_least": cut or len(found) > limit,
    }


def get_partition(request: Request, ns: str, name: str) -> Json:
    """Read one partition, ready or not. The answer has the jobs that count it or wait for it, and the runs that it has
    led to. It leaves out those of namespaces that the signer may not read."""
    full, text = f"{ns}.{name}", query(request, "values")
    dataset = Dataset.model_validate(get(ports(), "dataset", full).document)
    values = partitions.values_of(dataset.keys, text, "values")
    if len(values) != len(dataset.keys):
        raise invalid("values", f"a value for each of the keys {'/'.join(dataset.keys)}", text, "such as 2013/1/4")
    return unseen.partition(partitions.one(ports(), full, dataset, values), sees(request))
