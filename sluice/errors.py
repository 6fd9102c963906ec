"""The errors between a user and the API, each with the exit code of the command line."""

from __future__ import annotations


class Failure(Exception):
    """An error that a user can correct: what was expected and received, the field, and what to do."""

    exit_code = 1

    def __init__(self, message: str, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.field, self.hint = message, field, hint


class ApiRefused(Failure):
    """The API answered with an error. ``status`` is the HTTP status, ``code`` the stable code of the API."""

    exit_code = 1

    def __init__(self, status: int, code: str, message: str, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, field, hint)
        self.status, self.code = status, code


class WrongUsage(Failure):
    """An argument, a file or a setting is invalid. Nothing was sent."""

    exit_code = 2


class NotReachable(Failure):
    """No answer of a Sluice API arrived: connection refused, timed out or broken, or an answer of another server."""

    exit_code = 3
