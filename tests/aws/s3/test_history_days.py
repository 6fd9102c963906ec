"""The installation sets how long history is kept. A row reads back the expiry that was written (H1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.aws.tables import items
from chalicelib.aws.tables.expressions import Shards
from chalicelib.aws.tables.statements import statement
from chalicelib.core.instants import DAY
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.run import Output, Pointer, Record
from chalicelib.core.rows.schedule import HISTORY
from chalicelib.core.writes import Create, Put, Replace
from chalicelib.settings import Settings
from tests.support import rows
from tests.support.clock import NOON
from tests.support.reasons import says

NAMES = {"catalog": "c", "jobs": "j", "runs": "r"}
RUN = rows.run(rev=2, expires_at=NOON + HISTORY)
RECORD = Record("j1", "SKIPPED", "demo.flights.clean", 1, says("why"), NOON, expires_at=NOON + HISTORY)
OF_RUNS = [
    Pointer("app/jr1", "j1", 1, NOON + HISTORY),
    Output("j1", 1, "the last line", NOON, expires_at=NOON + HISTORY),
    DagRun("j1", rev=1, expires_at=NOON + HISTORY),
]
REQUIRED = ("CATALOG_TABLE", "JOBS_TABLE", "RUNS_TABLE", "HINTS_QUEUE_URL", "LAKE_BUCKET", "CONTROL_BUCKET")


@pytest.mark.parametrize("write", [Create(RUN), Replace(RUN), Put(RECORD), *map(Put, OF_RUNS)])
def test_h1_history_expires_after_the_installation_period(write: Create | Replace | Put) -> None:
    item = statement(write, NAMES, Shards(4, 4, sooner=HISTORY - 90 * DAY)).arguments["Item"]
    assert item["ttl"] == {"N": str((NOON + 90 * DAY) // 1000)}
    # Each write computes the TTL from the original expiry, so repeated writes do not shorten it.
    assert items.from_item(type(write.row), item).expires_at == NOON + HISTORY


def test_h1_history_is_kept_for_180_days_by_default_others_not() -> None:
    plain = statement(Create(RUN), NAMES, Shards(4, 4)).arguments["Item"]
    assert plain["ttl"] == {"N": str((NOON + 180 * DAY) // 1000)}
    job = replace(rows.job(), expires_at=NOON + HISTORY)
    answer = statement(Create(job), NAMES, Shards(4, 4, sooner=DAY)).arguments["Item"]
    assert answer["ttl"] == {"N": str((NOON + HISTORY) // 1000)}


@pytest.mark.parametrize(("given", "days"), [(None, 180), ("90", 90), ("180", 180)])
def test_h1_the_history_period_is_a_setting(given: str | None, days: int) -> None:
    answer = {f"SLUICE_{name}": "x" for name in REQUIRED} | ({"SLUICE_HISTORY_DAYS": given} if given else {})
    assert Settings.from_environment(answer).history_days == days


@pytest.mark.parametrize("given", ["89", "181", "a year", "", "-100"])
def test_h1_a_period_out_of_bounds_is_refused(given: str) -> None:
    answer = {f"SLUICE_{name}": "x" for name in REQUIRED} | {"SLUICE_HISTORY_DAYS": given}
    with pytest.raises(RuntimeError, match="expected 90 to 180 in SLUICE_HISTORY_DAYS"):
        Settings.from_environment(answer)
