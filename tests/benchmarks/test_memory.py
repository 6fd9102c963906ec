"""The model that predicts the cost and the effect of memory: its shape, on which the defaults of the
template depend.
"""

from pathlib import Path

import pytest

from benchmarks import memory
from benchmarks.cost.prices import LAMBDA_GB_SECOND, LAMBDA_REQUEST, MILLION
from benchmarks.memory import SIZES, Work, cpu_share, predict, table, work_of


def test_a_cpu_is_shared_by_memory_and_a_thread_has_one_at_most() -> None:
    assert cpu_share(512) == pytest.approx(0.29, abs=0.005)
    assert (cpu_share(1769), cpu_share(3008)) == (1, 1)


def test_waiting_is_as_long_at_any_memory_size_computing_is_not() -> None:
    assert predict(Work(1, 0, 100), 256).ms == predict(Work(1, 0, 100), 1769).ms == 100
    assert predict(Work(1, 10, 100), 1769).ms == 110
    assert predict(Work(1, 10, 0), 884).ms == pytest.approx(20, rel=0.01)


def test_computing_costs_the_same_up_to_a_cpu_and_waiting_more() -> None:
    computes, waits = Work(1, 50, 0), Work(1, 0, 50)
    assert predict(computes, 512).usd_per_million == pytest.approx(predict(computes, 1769).usd_per_million)
    fixed = LAMBDA_REQUEST * MILLION
    assert predict(waits, 1024).usd_per_million - fixed == pytest.approx(
        2 * (predict(waits, 512).usd_per_million - fixed)
    )
    assert predict(waits, 1024).usd_per_million == pytest.approx(fixed + 0.05 * LAMBDA_GB_SECOND * MILLION)


def test_the_work_of_a_path_is_its_calls_without_lambda_polling() -> None:
    work = work_of({"dynamodb:GetItem": 2, "sqs:SendMessage": 1, "sqs:ReceiveMessage": 1, "lambda:check": 1})
    assert work == Work(1, 3 * 1.3 + 5.0, 2 * 6.0 + 12.0)


def test_the_memory_table_has_a_row_for_each_size() -> None:
    lines = list(table([{"path": "cron_to_sqs", "calls": {"lambda:check": 1, "dynamodb:GetItem": 10}}], 413))
    assert len(lines) == 2 + len(SIZES)
    assert lines[3] == "| 512 | 0.29 | 122 ms, $1.22 | 1,427 ms |"


def test_the_page_shows_the_table_of_the_committed_results(capsys: pytest.CaptureFixture[str]) -> None:
    memory.main()
    page = (Path(__file__).parents[2] / "docs" / "performance.md").read_text()
    shown = page.partition("<!-- memory -->")[2].partition("<!-- end -->")[0]
    assert shown.strip() == capsys.readouterr().out.strip()
