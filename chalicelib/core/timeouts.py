"""How long a job may wait to be launched, and what becomes of it then (C10)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Tag

from chalicelib.core.calendar import Millis, duration
from chalicelib.core.documents import Document, Duration, one_of


class Timeout(Document):
    """What becomes of a job that has not been launched ``after`` its creation (C10)."""

    after: Duration = "1d"
    then: Literal["abort", "run"] = "abort"

    @property
    def millis(self) -> Millis:
        return duration(self.after)


TimeoutOrNever = Annotated[
    Annotated[Timeout, Tag("@timeout")] | Annotated[Literal["never"], Tag("@never")],
    one_of(
        lambda value: "@never" if value == "never" else "@timeout" if isinstance(value, dict | Timeout) else "@other",
        "an object with after and then, or 'never'",
    ),
]
