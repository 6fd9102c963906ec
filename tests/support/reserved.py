"""The words that DynamoDB takes for no name of an attribute in an expression.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ReservedWords.html
A stand-in for DynamoDB may take them: moto does in the conditions of queries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

EXPRESSIONS = ("Update", "Condition", "KeyCondition", "Filter", "Projection")
_WORDS = frozenset(ReservedKeywords.get_reserved_keywords())
_NAME = re.compile(r"(?<![\w:#])[a-z]\w*(?!\w*\()")  # in small letters, and no function such as size()


def reserved_in(request: Mapping[str, Any]) -> list[str]:
    """The reserved words among the names in the expressions of a request, and of those within a transaction."""
    texts = [str(request.get(f"{kind}Expression", "")) for kind in EXPRESSIONS]
    own = [name for text in texts for name in _NAME.findall(text) if name.upper() in _WORDS]
    parts = [part for action in request.get("TransactItems", ()) for part in action.values()]
    return own + [name for part in parts for name in reserved_in(part)]


def refuse(params: Mapping[str, Any], **_: Any) -> None:
    """As a handler of the event before each call of a client."""
    assert not reserved_in(params), f"{params} has the reserved words {reserved_in(params)}"
