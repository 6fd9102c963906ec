"""The payload of a custom event: an object of bounded size, because each schedule that it triggers stores a copy."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import AfterValidator

from chalicelib.core.documents import Properties
from chalicelib.core.errors import SluiceError

MAX_PAYLOAD = 10_000  # bytes as JSON


def _check_size(payload: Properties) -> Properties:
    size = len(json.dumps(payload).encode())
    if size > MAX_PAYLOAD:
        hint = "put large data into S3 and pass a reference"
        raise SluiceError("too_large", f"expected a payload of at most {MAX_PAYLOAD} bytes, got {size}", "", hint)
    return payload


Payload = Annotated[Properties, AfterValidator(_check_size)]
