"""What can go wrong between a user and the API: four words, each with the exit code of the command line."""

from __future__ import annotations


class Failure(Exception):
    """Something a user can understand and mend: what was expected and what came, where, and what to do."""

    exit_code = 1

    def __init__(self, message: str, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.field, self.hint = message, field, hint


class ApiRefused(Failure):
    """The API answered, and the answer is no. ``status`` is that of HTTP, ``code`` the API's own stable word."""

    exit_code = 1

    def __init__(self, status: int, code: str, message: str, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, field, hint)
        self.status, self.code = status, code


class WrongUsage(Failure):
    """What was asked cannot be asked: an argument, a file, or a setting is not as it has to be. Nothing was sent."""

    exit_code = 2


class NotReachable(Failure):
    """No answer of a Sluice API came: refused, timed out, broken off, or the answer of something else."""

    exit_code = 3
