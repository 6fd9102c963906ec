"""A client of DynamoDB that sends rows as they are, and returns them as they come.

Items have the form of DynamoDB's JSON already: ``{"pk": {"S": "..."}}``. botocore walks through its model for each
attribute of each row nevertheless, to find dates and binary values, of which rows have none. That would be a third of
the CPU of a burst. Here botocore gets a request without members, and a response without a body. Its own events let the
members be added before it signs the request, and be read before it parses the response. It still parses errors.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.LowLevelAPI.html
"""

from __future__ import annotations

import json
from typing import Any

_MEMBERS = "sluice_members"  # in the context of a request, which botocore hands from event to event


def as_it_is(client: Any) -> Any:
    """The same client, with requests and responses that pass unchanged. A binary value would stay text in base64. The
    client must not validate parameters, since it sees none."""
    events = client.meta.events
    events.register("provide-client-params.dynamodb", _take)
    events.register("before-call.dynamodb", _add)
    events.register("before-parse.dynamodb", _read)
    return client


def _take(params: dict[str, Any], context: dict[str, Any], **_: Any) -> dict[str, Any]:
    context[_MEMBERS] = params
    # The rules of endpoints ask for the tables of a batch, and fail without.
    return {"RequestItems": {name: {} for name in params["RequestItems"]}} if "RequestItems" in params else {}


def _add(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    params["body"] = json.dumps(context[_MEMBERS], separators=(",", ":")).encode()


def _read(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    if response_dict["status_code"] >= 300:
        return
    try:
        customized_response_dict.update(json.loads(response_dict["body"]))
    except ValueError:  # no JSON: botocore decides what this is
        return
    response_dict["body"] = b"{}"
