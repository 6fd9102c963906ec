"""Which reports of an object are about one version of it: one write of its content.

The notifications of S3 have the sequencer of the version, an instant in milliseconds and the ETag; the events of
EventBridge have the same sequencer and ETag, and whole seconds that may be later. A listing has whole seconds and the
ETag, and no sequencer. An ETag alone names no version: a flag is empty, so all its versions have one ETag.
"""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core.instants import SECOND, Instant


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """A version as one report names it. ``etag`` and ``sequencer`` are empty if the report lacks them."""

    at: Instant
    etag: str = ""
    sequencer: str = ""

    @property
    def second(self) -> Instant:
        return self.at - self.at % SECOND


def is_same(one: ObjectVersion, other: ObjectVersion) -> bool:
    """Whether two reports are about one version of an object. Without both sequencers they are, if they have the same
    content, and seconds that differ by one at most."""
    if one.sequencer and other.sequencer:
        return _compared(one, other)[0] == _compared(one, other)[1]
    alike = not one.etag or not other.etag or one.etag == other.etag
    return alike and abs(one.second - other.second) <= SECOND


def is_later(one: ObjectVersion, other: ObjectVersion) -> bool:
    """Whether ``one`` was written after ``other``."""
    if one.sequencer and other.sequencer:
        return _compared(one, other)[0] > _compared(one, other)[1]
    return one.at > other.at


def _compared(one: ObjectVersion, other: ObjectVersion) -> tuple[str, str]:
    """The sequencers of two versions as texts of one length, which compare like the versions.
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html"""
    length = max(len(one.sequencer), len(other.sequencer))
    return one.sequencer.lower().ljust(length, "0"), other.sequencer.lower().ljust(length, "0")
