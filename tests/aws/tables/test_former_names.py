"""A renamed field: rows of older releases stay readable, and older code can read the rows of this one (O11)."""

from __future__ import annotations

from typing import Any

from chalicelib.aws.tables import items
from chalicelib.core.rows.notice import NoticeWindow
from tests.support.clock import NOON

FIRST, SECOND = {"what": "FAILED", "id": "r1"}, {"what": "FAILED", "id": "r2"}


def window(*events: dict[str, str]) -> NoticeWindow:
    return NoticeWindow("demo.flights.clean", "c", {"type": "sqs"}, NOON, NOON + 1, count=len(events), events=events)


def stored(row: NoticeWindow) -> dict[str, Any]:
    return items.to_item(row, 4, 4)


def test_o11_a_row_under_the_former_name_is_read() -> None:
    older = stored(window(FIRST))
    del older["events"]

    row = items.from_item(NoticeWindow, older)

    assert row == window(FIRST)
    assert row.unknown == ()


def test_o11_older_code_finds_the_former_name() -> None:
    assert items.picked(stored(window(FIRST)), ["told"]) == ((FIRST,),)
    assert items.picked(stored(window()), ["told"]) == ((),)


def test_o11_a_change_under_the_former_name_counts() -> None:
    """Older code keeps ``events`` as it was read, because it does not know the name, and adds to ``told``."""
    changed = stored(window(FIRST)) | {"told": stored(window(FIRST, SECOND))["told"]}

    assert items.from_item(NoticeWindow, changed).events == (FIRST, SECOND)


def test_o11_a_row_with_the_new_name_alone_is_read() -> None:
    newer = stored(window(FIRST))
    del newer["told"]

    assert items.from_item(NoticeWindow, newer) == window(FIRST)
