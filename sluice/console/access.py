"""Whose requests the proxy accepts: those of its own page, in the browser that the user opened.

The proxy signs requests with the user's credentials. Every program and every web page that can reach its port could act
as the user, if the proxy did not refuse it here.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

HEADER = "X-Sluice-Token"
HOSTS = ("127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer of the proxy itself, in the API's own form."""

    status: int
    code: str
    message: str
    hint: str

    def as_api(self) -> dict[str, dict[str, str | None]]:
        return {"error": {"code": self.code, "message": self.message, "field": None, "hint": self.hint}}


def new_token() -> str:
    """A random token of 256 bits. Each start of the proxy makes a new one."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True, slots=True)
class Access:
    """What a request must show: the proxy's own address, and for calls of the API its token."""

    port: int
    token: str

    def refused_host(self, hosts: list[str]) -> Refused | None:
        """The refusal of a request for another host, or None. ``hosts`` are the values of all its ``Host`` headers.

        A web page can make its own name resolve to 127.0.0.1 (DNS rebinding). The browser then sends that name as
        ``Host``.
        """
        if len(hosts) == 1 and hosts[0].lower() in self._own_hosts():
            return None
        got = ", ".join(repr(host) for host in hosts) or "none"
        return Refused(
            421,
            "wrong_host",
            f"expected the host 127.0.0.1:{self.port} or localhost:{self.port}, got {got}",
            "open the address that sluice console prints",
        )

    def refused_call(self, headers: Mapping[str, str]) -> Refused | None:
        """The refusal of a call of the API, or None. The names in ``headers`` are in lower case.

        A browser sends ``Origin`` and ``Sec-Fetch-Site`` itself: a page of another origin cannot leave them out. Ports
        share cookies but not ``localStorage``, so the token is in a header.
        """
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and origin.lower() not in {f"http://{host}" for host in self._own_hosts()}:
            return _foreign(f"expected a request of the console's own page, got one of {origin!r}")
        if site is not None and site != "same-origin":
            return _foreign(f"expected a request of the console's own page, got Sec-Fetch-Site: {site!r}")
        if not hmac.compare_digest(headers.get(HEADER.lower(), "").encode(), self.token.encode()):
            return Refused(
                401,
                "stale_token",
                "expected the token of this console, got none or that of an earlier one",
                "run sluice console again, or sluice open while it runs",
            )
        return None

    def _own_hosts(self) -> set[str]:
        return {f"{host}:{self.port}" for host in HOSTS}


def _foreign(message: str) -> Refused:
    return Refused(403, "foreign_page", message, "use the console in the tab that sluice console opened")
