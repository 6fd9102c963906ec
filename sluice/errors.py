"""The errors between a user and the API, each with the exit code of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a document or a command: what was expected and received, the field, and what to do."""

    message: str
    field: str | None = None
    hint: str | None = None
    code: str = "invalid"


class Failure(Exception):
    """An error that a user can correct: what was expected and received, the field, and what to do. ``problems`` are all
    problems that were found; the others of the error are those of the first. ``code`` is stable, so that programs can
    tell errors apart."""

    exit_code = 1
    code = "failed"

    def __init__(self, message: str, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.field, self.hint = message, field, hint
        self.problems: tuple[Problem, ...] = (Problem(message, field, hint),)


class ApiRefused(Failure):
    """The API answered with an error. ``status`` is the HTTP status, ``code`` the stable code of the API."""

    exit_code = 1

    def __init__(self, status: int, code: str, message: str, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, field, hint)
        self.status, self.code = status, code
        self.problems = (Problem(message, field, hint, code),)


class WrongUsage(Failure):
    """An argument, a file or a setting is invalid. Nothing was sent."""

    exit_code = 2
    code = "wrong_usage"

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> Self:
        """The error with all these problems, of which there is at least one."""
        first = problems[0]
        failure = cls(first.message, first.field, first.hint)
        failure.problems = tuple(problems)
        return failure


class NotReachable(Failure):
    """No answer of a Sluice API arrived: connection refused, timed out or broken, or an answer of another server."""

    exit_code = 3
    code = "not_reachable"


class Unexpected(Failure):
    """A bug of the command line."""

    code = "unexpected"
