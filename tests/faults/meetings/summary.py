"""Prints, at the end of a test session, the number of orders and meetings that were tried, by situation.

``MEETINGS=1-100`` selects the first hundred meetings of those that pytest has collected, so that a long run can be made
in pieces.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out the meetings that ``MEETINGS`` does not select. Other tests stay."""
    if not (selected := os.environ.get("MEETINGS")):
        return
    first, last = bounds(selected)
    meetings = [item for item in items if "meeting" in getattr(item, "fixturenames", ()) and is_selected(config, item)]
    out = set(meetings) - set(meetings[first - 1 : last])
    config.hook.pytest_deselected(items=[item for item in items if item in out])
    items[:] = [item for item in items if item not in out]


def is_selected(config: Any, item: Any) -> bool:
    """Whether ``-m long`` or ``-m "not long"`` runs a test. Only tests that run are numbered."""
    expected = {"long": True, "not long": False}.get(config.getoption("markexpr", ""))
    return expected is None or expected == (item.get_closest_marker("long") is not None)


def bounds(selected: str) -> tuple[int, int]:
    """The first and the last number of a range such as ``1-100``."""
    first, dash, last = selected.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last)):
        raise ValueError(f"expected MEETINGS as a range such as 1-100, got {selected!r}")
    return int(first), int(last)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [each for outcome in ("passed", "failed") for each in terminalreporter.stats.get(outcome, [])]
    answer = [dict(each.user_properties)["orders"] for each in reports if "orders" in dict(each.user_properties)]
    if not answer:
        return
    meetings, orders, whole, broken = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for name, tried, all_of_them, broke in answer:
        situation = name.partition("-")[0]
        meetings[situation] += 1
        orders[situation] += tried
        whole[situation] += bool(all_of_them)
        broken[situation] += broke
    terminalreporter.section("orders of invocations that meet")
    for name in meetings:
        line = f"{name}: {orders[name]} orders of {meetings[name]} meetings, all classes of {whole[name]}"
        terminalreporter.write_line(line + (f"; {broken[name]} broke a promise" if broken[name] else ""))
    terminalreporter.write_line(
        f"{orders.total()} orders of {meetings.total()} meetings in all, all classes of {whole.total()}"
    )
