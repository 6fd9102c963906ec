"""Prints, at the end of a test session, the number of orders and meetings that were tried, by situation."""

from __future__ import annotations

from collections import Counter
from typing import Any


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
        line = f"{name}: {orders[name]} orders of {meetings[name]} meetings, {whole[name]} of these exhaustively"
        terminalreporter.write_line(line + (f"; {broken[name]} broke a promise" if broken[name] else ""))
    terminalreporter.write_line(f"{orders.total()} orders of {meetings.total()} meetings in all")
