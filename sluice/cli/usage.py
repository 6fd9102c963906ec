"""Errors of click in the words of this command line: what was expected, what came, what to do.

Their classes move between versions of typer, so an error is recognized by its text.
"""

from __future__ import annotations

import re
from typing import Any

from sluice.errors import WrongUsage

_NO_COMMAND = re.compile(r"No such command '(.*?)'\.?(?: Did you mean (.*)\?)?", flags=re.S)
_MISSING = re.compile(r"Missing (argument|option|parameter) '([^']+)'")
_INVALID = re.compile(r"Invalid value for '([^']+)'")
_OPTION = re.compile(r"Option '([^']+)' (requires an argument|does not take a value)")
_EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", flags=re.S)
# Commands of other schedulers and tools, and what they are here.
_WORDS_ELSEWHERE = {
    "list": "get", "ls": "get", "create": "apply", "deploy": "apply",
    "update": "apply", "put": "apply", "edit": "apply",
    "start": "run", "trigger": "run", "invoke": "run", "execute": "run", "test": "dry-run", "show": "describe",
    "status": "top", "ps": "top", "history": "runs list", "stop": "disable", "unpause": "resume", "remove": "delete",
    "rm": "delete", "cancel": "runs cancel", "kill": "runs cancel", "rerun": "runs rerun", "retry": "runs rerun",
    "clear": "reprocess", "replay": "reprocess", "log": "logs", "explain": "why", "diff": "apply --dry-run",
    "schedules": "get schedules", "workflows": "get workflows", "apps": "get apps", "namespaces": "get namespaces",
}  # fmt: skip
# What follows a group that was given a name at once.
_WITH_A_NAME = {
    "sluice runs": "list -s {}",
    "sluice jobs": "-s {}",
    "sluice backfill": "begin {} --from ... --to ...",
}
# The filters of lists (`filters`), by which a list says what it takes instead of another one.
_FILTERS = (
    *("--app", "--schedule", "--workflow", "--target", "--tag", "--state", "--kind", "--waits-for"),
    *("--text", "--late", "--day", "--since", "--until"),
)
_OF_A_KIND = ("sluice describe", "sluice delete", "sluice get")
# What pydantic, which reads the values for typer, expected.
_SHOULD_BE = (
    (re.compile(r"valid integer"), "a whole number"),
    (re.compile(r"valid number"), "a number"),
    (re.compile(r"greater than or equal to (\S+)"), "{} or more"),
    (re.compile(r"less than or equal to (\S+)"), "{} or less"),
)


def in_words(error: Any) -> WrongUsage | None:
    """The error of a wrong argument or option; None if a command without arguments has just shown its help."""
    message = str(error.format_message())
    if not message:
        return None
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "sluice"
    help_hint = f"{path} --help"
    if message.startswith("No such option"):
        near = getattr(error, "possibilities", None)
        hint = f"did you mean {sorted(near)[0]}?" if near else f"{help_hint} lists its options"
        if error.option_name in _FILTERS:
            hint = _filters_of(context) or hint
        return WrongUsage(f"expected an option of {path}, got {error.option_name!r}", error.option_name, hint)
    if found := _NO_COMMAND.match(message):
        hint = f"did you mean {found[2]}?" if found[2] else _instead(path, found[1]) or f"{help_hint} lists them"
        return WrongUsage(f"expected a command of {path}, got {found[1]!r}", None, hint)
    if found := _MISSING.match(message):
        if found[2] == "NAME" and path in _OF_A_KIND:
            help_hint = f"write the kind before the name: {path} schedule demo.flights.clean"
        return WrongUsage(f"expected the {found[1]} {found[2]}, got nothing", found[2], help_hint)
    if found := _INVALID.match(message):
        return WrongUsage(f"expected {_expected(message)}, got {_given(error)}", found[1], help_hint)
    if found := _OPTION.match(message):
        if found[2].startswith("requires"):
            return WrongUsage(f"expected a value after {found[1]}, got none", found[1], help_hint)
        return WrongUsage(f"expected {found[1]} alone, got a value for it", found[1], "leave out the value")
    if found := _EXTRA.match(message):
        if "." in found[1] and path in ("sluice runs list", "sluice records", "sluice jobs list"):
            help_hint = f"{path} -s {found[1].split()[0]}"
        return WrongUsage(f"expected no further argument, got {found[1]!r}", None, help_hint)
    plain = message[:1].lower() + message[1:].rstrip(".")  # only the first letter: a name may follow
    return WrongUsage(plain, None, help_hint)


def _filters_of(context: Any) -> str | None:
    """The filters that a command has, instead of one that it does not have; None for a command without any."""
    known = [option for param in context.command.params for option in param.opts if option in _FILTERS]
    return f"leave it out; this takes {', '.join(known)}" if known else None


def _instead(path: str, given: str) -> str | None:
    """The command that was meant: the one that has this word elsewhere, or the command of a group that takes a name."""
    if path == "sluice":
        meant = _WORDS_ELSEWHERE.get(given)
        return f"did you mean {meant}?" if meant else None
    rest = _WITH_A_NAME.get(path) if "." in given else None
    return f"{path} {rest.format(given)}" if rest else None


def _expected(message: str) -> str:
    for pattern, words in _SHOULD_BE:
        if found := pattern.search(message):
            return words.format(*found.groups())
    return "another value"


def _given(error: Any) -> str:
    """The value that was refused, where the error still has it."""
    cause = error.__cause__ or error.__context__
    details = cause.errors() if hasattr(cause, "errors") else []
    return repr(details[0]["input"]) if details else "one that is not allowed"
