"""Signed HTTP requests (SigV4, service ``execute-api``), with the credentials of the environment.

botocore is imported at the first request, because the import takes longer than all of ``sluice --help``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sluice.errors import NotReachable, WrongUsage

CONNECT_SECONDS = 5.0
# API Gateway ends a request after 29 s with an answer; one more second lets the client receive it.
READ_SECONDS = 30.0
_REGION_IN_HOST = re.compile(r"\.execute-api\.([a-z0-9-]+)\.amazonaws\.com")


class Broken(NotReachable):
    """The connection broke before an answer. Whether the request was carried out is unknown."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A plain HTTP answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class SignedHttp:
    """Sends requests to one host, signed with the environment's AWS credentials. Connections are reused.

    ``environment`` holds the region (``AWS_REGION`` or ``AWS_DEFAULT_REGION``); a host of API Gateway contains its own.
    """

    def __init__(
        self,
        url: str,
        environment: Mapping[str, str] | None = None,
        connect_seconds: float = CONNECT_SECONDS,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        import botocore.httpsession
        import botocore.session
        from botocore.utils import get_environ_proxies

        session = botocore.session.Session()
        self._credentials: Any = _credentials(session)
        self.region = _region(url, os.environ if environment is None else environment, session)
        self._http: Any = botocore.httpsession.URLLib3Session(
            timeout=(connect_seconds, read_seconds),
            verify=session.get_config_variable("ca_bundle") or True,
            proxies=get_environ_proxies(url),
        )

    def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes | None) -> Reply:
        """Send one request and return the answer with any status. Raises `NotReachable` without an answer."""
        from botocore import exceptions
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        origin = _origin(url)
        request = AWSRequest(method=method, url=url, headers=dict(headers), data=content)
        # Frozen at each request: botocore renews the credentials of a role during a long `run --wait`.
        SigV4Auth(self._credentials.get_frozen_credentials(), "execute-api", self.region).add_auth(request)
        try:
            answer = self._http.send(request.prepare())
        except exceptions.EndpointConnectionError:
            message = f"expected an API at {origin}, got no connection"
            raise NotReachable(message, hint=_START_HINT) from None
        except exceptions.ConnectTimeoutError:
            raise NotReachable(f"expected a connection to {origin} in time, got none", hint=_ADDRESS_HINT) from None
        except exceptions.ReadTimeoutError:
            raise NotReachable(f"expected an answer from {origin} in time, got none", hint=_UNKNOWN_HINT) from None
        except exceptions.SSLError as error:
            raise NotReachable(
                f"expected a trusted connection to {origin}, got an error: {error}", hint=_ADDRESS_HINT
            ) from None
        except exceptions.ConnectionClosedError:
            raise Broken(
                f"expected an answer from {origin}, got none: it closed the connection", hint=_UNKNOWN_HINT
            ) from None
        except (exceptions.HTTPClientError, exceptions.ProxyConnectionError) as error:
            raise NotReachable(f"expected an answer from {origin}, got an error: {error}", hint=_ADDRESS_HINT) from None
        return Reply(answer.status_code, {k.lower(): v for k, v in answer.headers.items()}, answer.content)


_START_HINT = "start it (make up), or correct SLUICE_API_URL"
_ADDRESS_HINT = "check SLUICE_API_URL and the network"
_UNKNOWN_HINT = "the request may have been carried out; check before you repeat it"


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _credentials(session: Any) -> Any:
    from botocore.exceptions import BotoCoreError

    try:
        found = session.get_credentials()
    except BotoCoreError as error:  # such as a profile that does not exist
        raise WrongUsage(
            f"expected AWS credentials for signing requests, got an error: {error}", None, _KEYS_HINT
        ) from None
    if found is None:
        raise WrongUsage("expected AWS credentials for signing requests, got none", "AWS_ACCESS_KEY_ID", _KEYS_HINT)
    return found


_KEYS_HINT = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (local: source .local/endpoints.env)"


def _region(url: str, environment: Mapping[str, str], session: Any) -> str:
    """The region of the API. The host's own region comes first, because a signature for another region is refused."""
    named = _REGION_IN_HOST.search(urlsplit(url).netloc)
    if named:
        return named.group(1)
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    region = region or session.get_config_variable("region")
    if not region:
        hint = "set AWS_REGION to the region of the API, such as us-east-1"
        raise WrongUsage("expected the AWS region of the API, got none", "AWS_REGION", hint)
    return str(region)
