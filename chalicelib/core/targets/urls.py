"""Web addresses and headers that a user may name: the checks that need no network (O6).

Sluice checks the IP address of a host name at each call (`aws/targets/safe_http.py`), because a name may resolve to a
different address by then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Discriminator, Field, Tag

from chalicelib.core.errors import invalid
from chalicelib.core.targets.secrets import SecretReference, SecretUrl, TextOrSecret, tag

LOWEST_PORT = 1024
WELL_KNOWN = {"http": 80, "https": 443}
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?\.?|[0-9A-Fa-f:.]{2,45}")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE = re.compile(r"[ -~]{0,1000}")
# Headers that belong to the connection, to the body or to Sluice. A user must not be able to forge signatures and ids.
RESERVED = frozenset(
    {
        *("host", "connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "trailer", "upgrade"),
        *("content-length", "content-type", "content-encoding", "transfer-encoding", "expect", "user-agent"),
    }
)


def check_url(url: str) -> str:
    """Returns an absolute http or https URL without user, password and fragment, with port 443, 80 or at least 1024.

    Raises ``invalid`` for any other text."""
    if re.search(r"[^!-~]|\\", url):
        raise invalid("", "a URL of printable ASCII characters without spaces", url, "percent-encode the others")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise invalid("", "a URL such as https://example.com/hook", url, str(error)) from None
    if parts.scheme not in WELL_KNOWN or not parts.hostname or not _HOST.fullmatch(parts.hostname):
        raise invalid("", "a URL such as https://example.com/hook", url)
    if "@" in parts.netloc:
        hint = "use a secret to sign the calls"
        raise invalid("", "a URL without a user and a password", "one with '@' before its path", hint)
    if parts.fragment:
        raise invalid("", "a URL without a fragment", url, "leave out '#' and what follows; clients do not send it")
    if port is not None and port < LOWEST_PORT and port not in WELL_KNOWN.values():
        raise invalid("", f"port 443, 80, or one from {LOWEST_PORT} on", port)
    return url


def port_of(parts: SplitResult) -> int:
    return parts.port if parts.port is not None else WELL_KNOWN[parts.scheme]


# Headers that carry credentials. Every reader of a workflow sees its headers, so a secret has to hold these.
_CREDENTIALS = re.compile(
    r"(.*-)?(authorization|cookie|token|secret|password|passwd|credentials?|api-?key)", re.IGNORECASE
)


def check_credentials(headers: Mapping[str, Any], field: str) -> None:
    """Raise ``invalid`` for a header that carries credentials and has its value in clear. Stored documents may have one
    from an earlier release, so this is checked when a document is put."""
    for name, value in headers.items():
        if isinstance(value, str) and _CREDENTIALS.fullmatch(name):
            hint = f"put the value into a secret, and name it: {name}: {{ssm: /sluice-target/<namespace>/<name>}}"
            raise invalid(
                f"{field}.{name}", "a secret by reference, because every reader sees a header", "a text", hint
            )


def check_headers(headers: dict[str, str | SecretReference]) -> dict[str, str | SecretReference]:
    """Returns the headers that a call has in addition to those of Sluice. Raises ``invalid`` for a malformed or
    reserved name, a malformed value, or names that differ only in their case."""
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise invalid("", "names of headers made of letters, digits and '-'", name)
        if name.lower() in RESERVED or name.lower().startswith("sluice-"):
            hint = "Sluice sets the headers of the connection and the content, and those that begin with Sluice-"
            raise invalid(name, "a header that is not reserved", name, hint)
        if isinstance(value, str) and not _VALUE.fullmatch(value):
            raise invalid(name, "at most 1000 printable ASCII characters", value)
    if len({name.lower() for name in headers}) < len(headers):
        raise invalid("", "each header once; upper and lower case are the same name", sorted(headers))
    return headers


_Address = Annotated[str, AfterValidator(check_url), Field(max_length=2048)]
Url = Annotated[Annotated[_Address, Tag("@text")] | Annotated[SecretUrl, Tag("@reference")], Discriminator(tag)]
Headers = Annotated[dict[str, TextOrSecret], AfterValidator(check_headers), Field(max_length=20)]
