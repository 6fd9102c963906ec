"""EMR's reason of a failure is the job's own error: no Spark warning, and not cut before the point."""

from __future__ import annotations

import pytest

from chalicelib.core.targets import emr_reason
from chalicelib.core.targets.answers import NOT_GIVEN

SENTENCE = "Job execution failed, please check complete logs in configured logging destination. ExitCode: "
WARNING = "26/11/20 11:56:30 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform"
ERROR = "ValueError: expected 24 hours of 2013-01-01, got 23: hour 17 is missing"
TRACEBACK = f"""half done
Traceback (most recent call last):
  File "/tmp/job.py", line 12, in <module>
    raise ValueError(text)
{ERROR}
"""
JAVA = """26/11/20 11:56:31 ERROR Executor: Exception in task 0.0
java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes
Exception in thread "main" org.apache.spark.SparkException: Job aborted due to stage failure
Caused by: java.io.IOException: No space left on device
\tat org.apache.spark.scheduler.DAGScheduler
26/11/20 11:56:32 INFO ShutdownHookManager: Shutdown hook called
"""


@pytest.mark.parametrize(
    ("details", "reason"),
    [
        (f"{SENTENCE}1. Last few exceptions: {ERROR}", f"exit code 1: {ERROR}"),
        (f"{SENTENCE}1. Last few exceptions: {WARNING}; {ERROR}", f"exit code 1: {ERROR}"),
        (f"{SENTENCE}1. Last few exceptions: {ERROR}\n{WARNING}\n{ERROR}", f"exit code 1: {ERROR}"),
        (f"{SENTENCE}1. Last few exceptions: {WARNING}...", "exit code 1"),
        (f"{SENTENCE}2. Last few exceptions: none found in the log", "exit code 2"),
        (f"{SENTENCE}1.", "exit code 1"),
        (
            SENTENCE.replace("execution ", "")
            + "137. Last few exceptions: Worker has been killed as memory usage grew",
            "exit code 137: Worker has been killed as memory usage grew",
        ),
        (
            "The driver needs 4 vCPU, the application has at most 2.",
            "The driver needs 4 vCPU, the application has at most 2.",
        ),
        ("", ""),
    ],
)
def test_a_reason_from_details_is_the_error_of_the_job(details: str, reason: str) -> None:
    assert emr_reason.of_details(details) == reason


def test_a_long_reason_keeps_its_beginning() -> None:
    reason = emr_reason.of_details(f"{SENTENCE}1. Last few exceptions: {ERROR} {'x' * 9_000}")
    assert reason.startswith(f"exit code 1: {ERROR}")
    assert len(reason) == emr_reason.MAX_REASON


@pytest.mark.parametrize(
    ("reason", "whole"),
    [
        (f"exit code 1: {ERROR}", True),
        ("exit code 1: ValueErr...", False),
        ("exit code 1", False),
        ("", False),
        (NOT_GIVEN, False),
    ],
)
def test_a_reason_is_whole_if_it_names_an_error_and_is_not_cut(reason: str, whole: bool) -> None:
    assert emr_reason.is_whole(reason) is whole


@pytest.mark.parametrize(
    ("stdout", "stderr", "error"),
    [
        (TRACEBACK, WARNING, ERROR),
        (
            f"{TRACEBACK}\nDuring handling, another exception occurred:\n\n{TRACEBACK.replace('24', '25')}",
            "",
            ERROR.replace("24", "25"),
        ),
        ("rows: 7\n", f"{WARNING}\n{TRACEBACK}", ERROR),
        (
            "Traceback (most recent call last):\n  File x\npy4j.protocol.Py4JJavaError: An error in o55.parquet.\n"
            ": org.apache.spark.SparkException: Job aborted.\n\tat org.apache\n",
            JAVA,
            "py4j.protocol.Py4JJavaError: An error in o55.parquet. : org.apache.spark.SparkException: Job aborted.",
        ),
        (
            "",
            JAVA,
            "org.apache.spark.SparkException: Job aborted due to stage failure "
            "Caused by: java.io.IOException: No space left on device",
        ),
        (f"read 7 rows\nthe file is empty\n{WARNING}\n", f"{WARNING}\n", "the file is empty"),
        ("", f"{WARNING}\n26/11/20 11:56:31 INFO SparkContext: stopped\n", None),
    ],
)
def test_the_log_of_a_driver_gives_the_error_that_ended_it(stdout: str, stderr: str, error: str | None) -> None:
    assert emr_reason.of_log({"stdout": stdout, "stderr": stderr}) == error


def test_a_cut_reason_is_completed_from_the_log() -> None:
    streams = {"stdout": TRACEBACK}
    assert emr_reason.with_error("exit code 1: ValueError: expected 24 ho...", streams) == f"exit code 1: {ERROR}"
    assert emr_reason.with_error("exit code 1", streams) == f"exit code 1: {ERROR}"
    assert emr_reason.with_error(NOT_GIVEN, streams) == ERROR
    assert emr_reason.with_error("exit code 1", {}) == "exit code 1"
