"""One exception for each kind of refusal by the API. Each is an `ApiRefused` with its ``code``.

Example:

    try:
        client.apply("app.yaml")
    except Invalid as refused:
        print(refused.field, refused.message, refused.hint)
"""

from __future__ import annotations

from sluice.errors import ApiRefused


class Invalid(ApiRefused):
    """The request or its document is wrong: ``invalid``, ``cycle``, ``bad_cursor`` or ``bad_json``."""


class UnknownField(Invalid):
    """The document has a field that the API does not know."""


class UnknownReference(Invalid):
    """The document names a workflow, a dataset or another definition that does not exist."""


class TooLarge(Invalid):
    """The document or its data exceeds a limit."""


class Forbidden(ApiRefused):
    """The caller may not do this, or the signature of the request was refused."""


class NotFound(ApiRefused):
    """Nothing has this name or id."""


class Conflict(ApiRefused):
    """The request does not fit the present state, such as the cancellation of a run that has ended."""


class OverQuota(Conflict):
    """The namespace would exceed one of its quotas."""


class InUse(Conflict):
    """Other definitions refer to what the request deletes."""


class LeaseLost(Conflict):
    """The worker no longer holds the lease of the run."""


class ChangedMeanwhile(Conflict):
    """Another request changed the document since it was read: read it again."""


class Unavailable(ApiRefused):
    """The API cannot answer now: it is throttled, or a service that it needs is down. A repeat may succeed."""


# The codes of the API. A code that is not listed here comes from a newer release, or from API Gateway or a proxy.
BY_CODE: dict[str, type[ApiRefused]] = {
    "invalid": Invalid,
    "cycle": Invalid,
    "bad_cursor": Invalid,
    "bad_json": Invalid,
    "unknown_field": UnknownField,
    "unknown_reference": UnknownReference,
    "too_large": TooLarge,
    "forbidden": Forbidden,
    "not_found": NotFound,
    "method_not_allowed": NotFound,
    "conflict": Conflict,
    "in_use": InUse,
    "over_quota": OverQuota,
    "lease_lost": LeaseLost,
    "changed_meanwhile": ChangedMeanwhile,
    "throttled": Unavailable,
    "unavailable": Unavailable,
    "internal": Unavailable,
}


def refusal(status: int, code: str, message: str, field: str | None = None, hint: str | None = None) -> ApiRefused:
    """The exception for an answer of the API, of the class of its code."""
    return BY_CODE.get(code, ApiRefused)(status, code, message, field, hint)
