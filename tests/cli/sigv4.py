"""Signature Version 4, verified on the server's side and without botocore, as API Gateway does.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

_HEADER = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<scope>[^,]+), SignedHeaders=(?P<signed>[^,]+), Signature=(?P<signature>\w+)"
)


def is_signed_by(
    key: str, secret: str, region: str, method: str, target: str, headers: Mapping[str, str], content: bytes
) -> bool:
    """Whether ``authorization`` is the header that the owner of the key would send with this request."""
    found = _HEADER.fullmatch(headers.get("authorization", ""))
    if found is None or "host" not in found["signed"].split(";"):
        return False
    instant = headers.get("x-amz-date", "")
    scope = f"{instant[:8]}/{region}/execute-api/aws4_request"
    if found["scope"] != f"{key}/{scope}":
        return False
    parts = urlsplit(target)
    lines = [
        method,
        quote(parts.path, safe="/~-_."),  # the path is encoded once more than it is sent; only S3 does not
        "&".join(sorted(parts.query.split("&"))) if parts.query else "",
        *(f"{name}:{headers[name].strip()}" for name in found["signed"].split(";")),
        "",
        found["signed"],
        hashlib.sha256(content).hexdigest(),
    ]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    derived = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        derived = _hmac(derived, part)
    expected = _hmac(derived, f"AWS4-HMAC-SHA256\n{instant}\n{scope}\n{digest}").hex()
    return hmac.compare_digest(expected, found["signature"])


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
