"""Why something waits, ended or started: a code for programs, typed names, and a text for users.

No decision reads the text. Control flow compares the code, and asks for the names: which constraints are unmet, which
namespaces have to give a grant. So a text can be reworded without another effect. Rows, views and errors hold the
value. It becomes a text where an answer is written, for a reader who may not know every name in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from chalicelib.core.ids import plain_in

MentionKind = Literal[
    "run", "schedule", "dataset", "other", "limit", "namespace", "constraint", "approval", "person", "answer",
    "place", "reference",
]  # fmt: skip
Sees = Callable[[str], bool]  # whether a reader may know a full name, by its namespace

# A name that may belong to another namespace has one of these kinds, unless the reader's own definitions have it. An
# error has such a name as ``other``.
FOUND: tuple[MentionKind, ...] = ("run", "schedule", "dataset", "other")
HIDDEN = "(hidden)"
UNCLEAR = "target_failed_unclear"

# The codes, which stay the same across versions. The code of an unmet constraint is the type of the constraint.
CODES: Mapping[str, str] = {
    # A job waits.
    "due_later": "its instant is still to come",
    "trigger_unmet": "its trigger waits for events",
    "paused": "its schedule is paused",
    "stopped": "its namespace, its app or a tag of it is stopped",
    "spread_again": "a pause held up its fire, whose other events are spread again",
    "grant_missing": "its schedule uses something of another namespace that grants it no longer, or not yet",
    "period_taken": "other work runs its period, or its partitions are not determined",
    "limit": "it waits for a permit of a limit",
    "limit_too_small": "it needs more units than its pool has",
    "limit_used_up": "a rate limit was reached while it queued, so it requests its permits again",
    "limits_changed": "its limits changed, so it requests its permits again",
    "try_failed": "a delivery failed, and the next try is still to come",
    "leased": "another invocation is delivering it, or goes on with it",
    # A job starts.
    "due": "its instant came",
    "trigger_met": "its trigger was met",
    "timeout_passed": "its timeout passed, after which its schedule lets it run",
    "requested": "a user asked to run the schedule",
    "run_again": "a user asked to run a run again",
    "backfill": "it is a part of a backfill or of a re-processing",
    "attempt_failed": "the attempt before failed",
    "redriven": "a user asked to deliver an event again",
    "repaired": "a repair found it after a restore of the tables",
    "started": "nothing else is known than its kind",
    "inherited": "its priority is that of a schedule that waits for it, or of a dataset",
    # A job ends without a run.
    "duplicate": "it has a run or a record already",
    "applied": "it is an event of the job that gathers, or no longer is",
    "coalesced": "it joined a job that still waited",
    "waiting_job_over": "the job that it would join has timed out",
    "timed_out": "it was not launched within its timeout",
    "window_over": "it was not started within the window of its fire",
    "match_expired": "its match was not completed within its window",
    "absence_over": "the event came whose absence it waits for",
    "workflow_deleted": "its workflow no longer exists",
    "schedule_deleted": "its schedule was deleted",
    "schedule_replaced": "its schedule was replaced, or enabled again",
    "schedule_ended": "its schedule was disabled or completed, or takes no fires",
    "drained": "its schedule was paused to drain",
    "backfill_over": "its backfill has ended or was cancelled",
    "backfill_deleted": "its backfill no longer exists",
    "divided": "its bundle was divided, because the schedule has changed",
    "fire_removed": "an update of its schedule, or of a time zone, removed its fire",
    "fires_skipped": "fires were missed during an outage and are not caught up",
    "fires_unprepared": "fires had not been prepared when their schedule ended",
    "occurrence_skipped": "a user asked to skip this occurrence",
    "event_not_counted": "the event does not count for the schedule",
    "refused": "a user refused it",
    "cancelled": "a user cancelled it",
    "dag_cancelled": "a user cancelled the run of its DAG",
    "round_repeated": "a node of a DAG runs again",
    "not_chosen": "the result of a node before it does not match the pattern of their edge",
    "result_missing": "a pattern asks for the result of a node that gave none, or one without fields",
    "element": "it is an element of the list of a DAG's node",
    "elements_ended": "each element of the list of a DAG's node has succeeded",
    "elements_failed": "elements of the list of a DAG's node have failed",
    "elements_cancelled": "the node of a DAG was cancelled, and with it its elements",
    "list_unfit": "the result of the node before has no list for each, or too long a one",
    "letter_dropped": "a user dropped its dead letter",
    "end_unknown": "no row says what became of it",
    "lease_lost": "a worker reported after it had lost its lease",
    # A run waits or ends.
    "target_busy": "the target refused the call for now",
    "no_answer": "the target gave no usable answer to the call",
    "target_refused": "the target refused the call for good",
    "target_failed": "the target reported a failure with its error",
    UNCLEAR: "the target reported a failure without the error, which the log of the run may have",
    "target_cancelled": "the target reported that the run was cancelled",
    "target_reported": "what the target or a worker reported last",
    "run_timed_out": "the run took longer than its workflow, or its DAG, lets it",
    "start_timed_out": "the run was requested and did not begin to run in time",
    "dag_failed": "a node of the DAG failed, and no rule took care of it",
    "room_made": "it was cancelled to make room for a newer run",
    "closed_before_start": "its schedule or its backfill ended before it was started",
    "not_attempted_again": "its next attempt was dropped",
    "not_delivered": "no try delivered the event",
    "worker_awaited": "it waits for a worker of its pool",
    "worker_claimed": "a worker claimed it and has not begun",
    "worker_released": "a worker gave it back before it began",
    "worker_lost": "its worker has sent no heartbeat",
}


@dataclass(frozen=True, slots=True)
class Mention:
    """A text as sentences write it, such as ``pool demo.spark``, and what it names."""

    text: str
    kind: str
    name: str

    def is_hidden(self, sees: Sees) -> bool:
        """Whether a reader may not know the name."""
        return self.kind in FOUND and not sees(self.name)

    def seen(self, sees: Sees) -> str:
        """The text, or `HIDDEN` in its place."""
        return HIDDEN if self.is_hidden(sees) else self.text


def everyone(_: str) -> bool:
    """A reader who may know every name."""
    return True


def readers_of(name: str) -> Sees:
    """A reader who may know the names of one namespace: that of a full name, or of an id."""
    namespace = name.partition(".")[0]
    return lambda other: other.partition(".")[0] == namespace


def mention(kind: MentionKind, name: str) -> Mention:
    """A mention whose text is the name itself."""
    return Mention(name, kind, name)


Part = str | Mention
_rendered: Callable[[Iterable[str]], str] = "".join


@dataclass(frozen=True, slots=True)
class Why:
    """A reason. ``parts`` are its text in order, each either plain text or a name with its kind."""

    code: str = ""
    parts: tuple[Part, ...] = ()

    @classmethod
    def of(cls, code: str, *parts: Part | Why) -> Why:
        """A reason with this code. A reason among the parts adds its text and its names."""
        return cls(code, tuple(_flat(parts)))

    def __bool__(self) -> bool:
        """Whether there is a reason."""
        return bool(self.code or self.parts)

    def __str__(self) -> str:
        """A reason within an f-string would lose its names."""
        raise TypeError("expected the reason as a part of Why.of, or its text")

    @property
    def text(self) -> str:
        """The reason in words, with all names."""
        return self.seen(everyone)

    def seen(self, sees: Sees) -> str:
        """The reason in words, for a reader who may know the names that ``sees`` accepts."""
        return plain_in(_rendered(part if isinstance(part, str) else part.seen(sees) for part in self.parts))

    @property
    def names(self) -> tuple[Mention, ...]:
        """What the reason names, each once."""
        return tuple(dict.fromkeys(part for part in self.parts if isinstance(part, Mention)))

    def named(self, kind: MentionKind) -> tuple[str, ...]:
        """The names of one kind, each once."""
        return tuple(dict.fromkeys(each.name for each in self.names if each.kind == kind))

    def without(self, kind: MentionKind) -> Why:
        """This reason without its names of one kind."""
        kept = (part for part in self.parts if isinstance(part, str) or part.kind != kind)
        return Why.of(self.code, *kept)

    def begins_with(self, other: Why) -> bool:
        """Whether this reason was made by adding to the other one."""
        return self.code == other.code and self.parts[: len(other.parts)] == other.parts

    def cut(self, length: int) -> Why:
        """The reason with at most this many characters."""
        kept: list[Part] = []
        for part in self.parts:
            text = part if isinstance(part, str) else part.text
            short = text[:length]
            kept.append(short if isinstance(part, str) else replace(part, text=short) if short else "")
            length -= len(short)
        return Why.of(self.code, *kept)

    def then(self, *parts: Part | Why) -> Why:
        """The same reason with more text behind it."""
        return replace(self, parts=(*self.parts, *_flat(parts)))

    def kept(self) -> str:
        """The form in which rows store the reason; `parse` reads it."""
        parts = [part if isinstance(part, str) else _short(part) for part in self.parts]
        return json.dumps([self.code, *parts], separators=(",", ":"), ensure_ascii=False) if self.code else ""


NONE = Why()


def plain(*parts: Part | Why) -> Why:
    """A part of a reason, or of an error: words and names without a code."""
    return Why.of("", *parts)


def parse(text: str) -> Why:
    """The inverse of ``Why.kept``."""
    if not text:
        return NONE
    code, *parts = json.loads(text)
    return Why(code, tuple(part if isinstance(part, str) else _long(*part) for part in parts))


def joined(reasons: Iterable[Part | Why], between: str = "; ") -> Why:
    """Several reasons, texts and names as one, with the code of the first. Empty ones are left out."""
    found = [why for each in reasons if (why := each if isinstance(each, Why) else plain(each)).parts]
    parts = [part for reason in found for part in (between, *reason.parts)]
    return Why.of(found[0].code, *parts[1:]) if found else NONE


def _flat(parts: Iterable[Part | Why]) -> Iterator[Part]:
    """The parts without empty and nested ones; neighbouring texts are one."""
    text = ""
    for part in parts:
        for each in part.parts if isinstance(part, Why) else (part,):
            if isinstance(each, str):
                text += each
                continue
            if text:
                yield text
                text = ""
            yield each
    if text:
        yield text


def _short(part: Mention) -> list[str]:
    return [part.kind, part.name] if part.text == part.name else [part.kind, part.name, part.text]


def _long(kind: str, name: str, text: str | None = None) -> Mention:
    return Mention(name if text is None else text, kind, name)
