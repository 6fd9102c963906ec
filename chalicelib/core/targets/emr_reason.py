"""Why a job run of EMR Serverless failed: the error of the job, from EMR's details and from the log of the driver.

EMR's ``stateDetails`` has at most 256 characters. Half of them are a fixed sentence, and the rest may be lines of
Spark's log. A longer text is cut. The log has the whole error, but EMR uploads it up to a minute after the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from chalicelib.core.targets.answers import NOT_GIVEN, NOT_YET_GIVEN

CUT = "..."
MAX_REASON = 4_000  # characters that a run row keeps
MAX_LINES = 6  # of one error: a Java error behind a Python one takes several
NO_REASON = ("", NOT_GIVEN, NOT_YET_GIVEN)
STREAMS = ("stdout", "stderr")  # Spark writes the output of a Python driver, tracebacks included, to stdout

_DETAILS = re.compile(
    r"Job (?:execution )?failed, please check complete logs in configured logging destination\.\s*"
    r"ExitCode: (?P<code>\d+)\.\s*(?:Last few exceptions:\s*(?P<errors>.*))?",
    re.DOTALL,
)
_LOG_LINE = re.compile(
    r"(?:\[?\d[\d\-/:.,TZ ]+\]?\s+)?(?:\[[^\]]*\]\s+)?(?:TRACE|DEBUG|INFO|WARN|WARNING)\b"
    r"|Warning: |WARNING: |SLF4J: |log4j:|:: "
)
_NOTHING = ("none found in the log", "")
_CODE = re.compile(r"exit code \d+")
_TRACEBACK = "Traceback (most recent call last):"
_JAVA = re.compile(r'(?:Exception in thread "[^"]*" )(?P<error>.*)')


def of_details(details: str) -> str:
    """The reason in EMR's details: exit code and errors, without the fixed sentence and lines of Spark's log."""
    found = _DETAILS.fullmatch(details.strip())
    if found is None:
        return details.strip()[:MAX_REASON]
    errors = [error.strip() for error in re.split(r"\n|; ", found["errors"] or "")]
    own = [error for error in errors if error not in _NOTHING and not _LOG_LINE.match(error)]
    code = f"exit code {found['code']}"
    return (f"{code}: {'; '.join(dict.fromkeys(own))}" if own else code)[:MAX_REASON]


def is_whole(reason: str) -> bool:
    """Whether a reason names an error, and was not cut."""
    return reason not in NO_REASON and not reason.endswith(CUT) and _CODE.fullmatch(reason) is None


def with_error(reason: str, streams: Mapping[str, str]) -> str:
    """The reason with the error of the job from the log of its driver; the reason alone if the log has none."""
    error = of_log(streams)
    if error is None:
        return reason
    code = _CODE.match(reason)
    return f"{code[0]}: {error}"[:MAX_REASON] if code else error[:MAX_REASON]


def of_log(streams: Mapping[str, str]) -> str | None:
    """The error that ended a driver: of its last traceback, or else its last Java exception. Without both, it is the
    last line that the job itself wrote, as ``sys.exit`` with a text does. None if it wrote none of these."""
    texts = [streams[name].splitlines() for name in STREAMS if name in streams]
    return _first(_of_traceback, texts) or _first(_of_java, texts) or _first(_last_line, texts[:1])


def _first(read: Callable[[list[str]], str | None], texts: Iterable[list[str]]) -> str | None:
    return next((error for lines in texts if (error := read(lines))), None)


def _of_traceback(lines: list[str]) -> str | None:
    start = max((number for number, line in enumerate(lines) if line.strip() == _TRACEBACK), default=None)
    if start is None:
        return None
    after = (number for number in range(start + 1, len(lines)) if lines[number] and not lines[number][0].isspace())
    begin = next(after, None)
    return None if begin is None else _joined(lines[begin:])


def _of_java(lines: list[str]) -> str | None:
    found = [(number, match) for number, line in enumerate(lines) if (match := _JAVA.match(line))]
    if not found:
        return None
    number, match = found[-1]
    return _joined([match["error"], *lines[number + 1 :]])


def _last_line(lines: list[str]) -> str | None:
    own = [line.strip() for line in lines if line.strip() and not _LOG_LINE.match(line)]
    return own[-1] if own else None


def _joined(lines: list[str]) -> str:
    """The lines of one error: up to an empty line, a line of its stack or of Spark's log."""
    own: list[str] = []
    for line in lines[:MAX_LINES]:
        if not line.strip() or line[0].isspace() or _LOG_LINE.match(line):
            break
        own.append(line.strip())
    return " ".join(own)
