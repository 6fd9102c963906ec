"""How a burst, many rows that are due at one instant, is divided into messages, and how early these must arrive.

Lambda starts 5 pollers of a queue at once, and 5 more each second. So a large burst has larger messages instead of more
of them, and its messages arrive earlier (decision 0075).
"""

from __future__ import annotations

from chalicelib.core.instants import SECOND, Millis

BURST = 200  # rows from which on their messages have an invocation each
LEAST, MOST = 250, 1_000  # rows of a message: those of a small burst, and of the largest one
MESSAGES = 100  # of a burst; larger bursts get larger messages, up to `MOST`
# A burst has a lead that grows with its size, because Lambda starts environments and pollers one after the other, and
# because two cores of a laptop need 1 to 2 ms of CPU to prepare a job.
LEAD, LEAD_PER_ROW, MAX_LEAD = 5 * SECOND, 2, 20 * SECOND
# A row of a larger message takes its receiver so many ms more.
LEAD_PER_LARGER_ROW = 7
LONGEST_LEAD = MAX_LEAD + LEAD_PER_LARGER_ROW * (MOST - LEAST)


LEAD_PER_MESSAGE = 200  # of bundles, each of which has one: 5 pollers a second


def lead_of_bundles(bundles: int) -> Millis:
    """How long before its instant the message of each of so many bundles must arrive."""
    return min(MAX_LEAD, LEAD + LEAD_PER_MESSAGE * bundles)


def rows_of_message(rows: int) -> int:
    """The most rows of a message of a burst of so many rows."""
    return max(LEAST, min(MOST, -(-rows // MESSAGES)))


def rows_of_each(count: int, rows: int) -> int:
    """The rows of each message for ``count`` rows out of a burst of ``rows``. The parts are equal, so that none is as
    small as an ordinary message."""
    return -(-count // -(-count // rows_of_message(rows)))


def lead(rows: int) -> Millis:
    """How long before its instant a message of a burst of so many rows must arrive."""
    return min(MAX_LEAD, LEAD + LEAD_PER_ROW * rows) + LEAD_PER_LARGER_ROW * (rows_of_message(rows) - LEAST)
