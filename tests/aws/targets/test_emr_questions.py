"""How EMR Serverless is polled about runs, and which of its rate limits the polls use (W7, W12)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from chalicelib.aws.targets.emr_serverless import MAX_PAGES_FOUND, EmrServerlessTarget
from chalicelib.core.instants import HOUR, MINUTE
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import SearchLimit, Started
from chalicelib.wiring import SystemClock
from sluice.operations.listings import started_since
from tests.core.builders import NOON, run

TARGET = {
    "type": "emr_serverless",
    "entry_point": "s3://code/job.py",
    "arguments": [],
    "py_files": [],
    "spark": {},
    "application_id": None,
    "execution_role_arn": None,
}


class Emr:
    """moto's EMR, with the names of the calls that were made."""

    def __init__(self) -> None:
        self.client: Any = boto3.client("emr-serverless", region_name="us-east-1")
        made = self.client.create_application(name="jobs", type="SPARK", releaseLabel="emr-7.1.0", clientToken="jobs")
        self.application = made["applicationId"]
        self.paused: list[float] = []
        role = "arn:aws:iam::123456789012:role/job"
        self.target = EmrServerlessTarget(self.client, self.application, role, "control", self.paused.append)
        self.calls: list[str] = []
        self.client.meta.events.register("before-call.emr-serverless.*", self._note)

    def _note(self, model: Any, **_: Any) -> None:
        self.calls.append(model.name)

    def all_are(self, state: str) -> None:
        """Set the state of all runs: in moto a job run has succeeded once it was started."""

        def listed(parsed: Any, **_: Any) -> None:
            for each in parsed.get("jobRuns", ()):
                each["state"] = state

        self.client.meta.events.register("after-call.emr-serverless.ListJobRuns", listed)

    def started(self, number: int) -> Run:
        now = SystemClock().now()
        asked = replace(run(run_id=f"demo.flights.clean.7.{number}"), start_requested_at=now, claimed_at=now)
        request = replace(asked.request, target=TARGET, name=f"{asked.run_id}-1", client_token=f"token-{number}")
        asked = replace(asked, request=request)
        answer = self.target.start(asked, {})
        assert isinstance(answer, Started)
        return replace(asked, target_id=answer.target_id)


@pytest.fixture
def emr(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emr]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_EMR_SERVERLESS", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        yield Emr()


def test_w7_a_listing_answers_for_many_and_the_rest_are_polled(emr: Emr) -> None:
    runs = [emr.started(number) for number in range(12)]
    emr.all_are("RUNNING")
    gone = replace(runs[0], target_id="/".join([str(runs[0].target_id).split("/")[0], "gone"]))
    emr.calls.clear()

    answer = emr.target.status_many([*runs, gone])

    assert emr.calls == ["ListJobRuns", "GetJobRun"]
    assert [update.state for update in answer if update] == ["RUNNING"] * 12 + ["FAILED"]
    assert [update.outcome for update in answer if update][-1] == "lost"
    assert [update.target_id for update in answer if update] == [each.target_id for each in [*runs, gone]]


def test_h1_an_ended_run_is_polled_alone_to_read_its_billing(emr: Emr) -> None:
    runs = [emr.started(number) for number in range(10)]
    emr.calls.clear()
    assert [update.state for update in emr.target.status_many(runs) if update] == ["SUCCEEDED"] * 10
    assert emr.calls == ["ListJobRuns"] + ["GetJobRun"] * 10


def test_w7_a_listing_never_costs_more_than_the_polls_it_saves(emr: Emr) -> None:
    runs = [emr.started(number) for number in range(9)]
    emr.calls.clear()
    assert len(emr.target.status_many(runs)) == 9
    assert emr.calls == ["GetJobRun"] * 9


def test_w7_a_throttled_poll_is_repeated_later(emr: Emr, monkeypatch: pytest.MonkeyPatch) -> None:
    one = emr.started(1)

    def throttled(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "any")

    monkeypatch.setattr(emr.client, "get_job_run", throttled)
    monkeypatch.setattr(emr.client, "list_job_runs", throttled)
    assert emr.target.status(one) is None
    assert emr.target.status_many([one] * 12) == [None] * 12


def test_w7_a_listed_state_does_not_wait_for_a_busy_billing_poll(emr: Emr, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [emr.started(number) for number in range(10)]

    def throttled(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "any")

    monkeypatch.setattr(emr.client, "get_job_run", throttled)
    assert [(each.state, each.billed) for each in emr.target.status_many(runs) if each] == [("SUCCEEDED", ())] * 10


def test_w7_polls_are_at_most_ten_a_second_and_pages_one_second(emr: Emr) -> None:
    """All have ended, so each is polled separately; none of the pages of the list has an ended run."""
    runs = [emr.started(number) for number in range(12)]
    gone = [replace(runs[0], target_id=f"{str(runs[0].target_id).split('/')[0]}/gone{each}") for each in range(20)]
    emr.calls.clear()
    emr.target.status_many([*runs, *gone])
    pages, questions = emr.calls.count("ListJobRuns"), emr.calls.count("GetJobRun")
    assert (pages, questions) == (1, 32)
    assert sum(emr.paused) == pytest.approx((pages - 1) * 1.0 + questions * 0.1)


@pytest.mark.parametrize(
    ("state", "at", "started_at"),
    [("RUNNING", NOON, None), ("SUCCESS", NOON + HOUR, NOON), ("FAILED", NOON + HOUR, NOON)],
)
def test_w7_a_poll_gives_when_a_run_began_and_ended_at_target(
    emr: Emr, monkeypatch: pytest.MonkeyPatch, state: str, at: int, started_at: int | None
) -> None:
    asked = emr.started(1)
    began, ended, written = (datetime.fromtimestamp((NOON + late) / 1000, UTC) for late in (0, HOUR, HOUR + MINUTE))
    found = {"state": state, "stateDetails": "", "startedAt": began, "endedAt": ended, "updatedAt": written}
    monkeypatch.setattr(emr.client, "get_job_run", lambda **_: {"jobRun": found})
    update = emr.target.status(asked)
    assert update is not None
    assert (update.at, update.started_at) == (at, started_at)


def test_w7_a_poll_gives_the_error_of_the_job_and_no_warning(emr: Emr, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, written = emr.started(1), datetime.fromtimestamp(NOON / 1000, UTC)
    details = (
        "Job failed, please check complete logs in configured logging destination. ExitCode: 1. Last few exceptions: "
        "26/11/20 11:56:30 WARN NativeCodeLoader: Unable to load native-hadoop library; ValueError: hour 17 is missing"
    )
    found = {"state": "FAILED", "stateDetails": details, "endedAt": written, "updatedAt": written}
    monkeypatch.setattr(emr.client, "get_job_run", lambda **_: {"jobRun": found})
    update = emr.target.status(asked)
    assert update is not None
    assert update.reason == "exit code 1: ValueError: hour 17 is missing"


@pytest.mark.parametrize(("timeout", "minutes"), [(0, 0), (12 * HOUR, 725), (MINUTE + 1, 7), (24 * HOUR, 1445)])
def test_w12_emr_gets_a_limit_a_little_later_than_the_timeout(emr: Emr, timeout: int, minutes: int) -> None:
    asked = replace(emr.started(1), run_timeout=timeout)
    assert emr.target.request(asked)["executionTimeoutMinutes"] == minutes


def test_w12_a_run_from_before_timeouts_is_started_unchanged(emr: Emr) -> None:
    assert "executionTimeoutMinutes" not in emr.target.request(emr.started(1))


class Listing:
    """An application of many runs. It lists those between two instants, newest first, and records the instants of its
    calls.
    """

    def __init__(self, created: dict[str, int], refuses: int = 0) -> None:
        self.created, self.refuses = created, refuses
        self.asked: list[dict[str, Any]] = []

    def list_job_runs(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        if self.refuses:
            self.refuses -= 1
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "ListJobRuns")
        first = asked["createdAtAfter"].timestamp() * 1000
        last = asked["createdAtBefore"].timestamp() * 1000 if "createdAtBefore" in asked else 10**15
        names = [name for name, at in sorted(self.created.items(), key=lambda each: -each[1]) if first <= at <= last]
        start = int(asked.get("nextToken", 0))
        found: dict[str, Any] = {"jobRuns": [{"id": f"jr-{name}", "name": name} for name in names[start : start + 50]]}
        return found | ({"nextToken": str(start + 50)} if start + 50 < len(names) else {})


def unanswered(name: str, lease_until: int | None = NOON + 50_000) -> Run:
    """A run whose first call was made at noon."""
    asked = run(run_id="demo.flights.clean.7.x")
    request = replace(asked.request, target=TARGET, name=name)
    return replace(asked, request=request, start_requested_at=NOON, unknown_answer=True, lease_until=lease_until)


def a_day_of_runs() -> dict[str, int]:
    """One run per second, half a day before noon and half a day after it."""
    return {f"run{second}": NOON + second * 1000 for second in range(-43_200, 43_200)}


def finding(listing: Listing) -> tuple[EmrServerlessTarget, list[float]]:
    paused: list[float] = []
    return EmrServerlessTarget(listing, "00app", "role", "control", paused.append), paused


@pytest.mark.parametrize(("name", "found"), [("run3", "00app/jr-run3"), ("lost", None)])
def test_w7_an_unanswered_start_is_found_in_pages_of_80000_runs(name: str, found: str | None) -> None:
    listing = Listing(a_day_of_runs())
    target, paused = finding(listing)
    assert target.find(unanswered(name)) == found
    # 50 seconds of the lease and two minutes on both sides are 290 runs.
    assert len(listing.asked) <= 6
    assert sum(paused) <= 5, "a page a second, which is what EMR bears"


def test_w7_a_throttled_page_is_repeated_and_finally_given_up() -> None:
    listing = Listing({"run1": NOON + 1000}, refuses=3)
    target, paused = finding(listing)
    assert target.find(unanswered("run1")) == "00app/jr-run1"
    assert paused == [1.0, 2.0, 4.0]

    target, _ = finding(Listing({"run1": NOON + 1000}, refuses=4))
    with pytest.raises(ClientError, match="slow down"):
        target.find(unanswered("run1"))


def test_w7_a_run_is_searched_from_its_first_call_on() -> None:
    listing = Listing({"early": NOON - 600_000, "late": NOON + 600_000})
    target, _ = finding(listing)
    assert target.find(unanswered("late", lease_until=None)) == "00app/jr-late"
    assert target.find(unanswered("early", lease_until=None)) is None, "it was created before the first call"


def test_w7_a_search_ends_after_forty_pages() -> None:
    """A withdrawal then ends the run, and says that it may run all the same."""
    target, paused = finding(Listing({f"run{number}": NOON + 1000 for number in range(50 * MAX_PAGES_FOUND + 1)}))
    with pytest.raises(SearchLimit, match="within 40 pages of job runs"):
        target.find(unanswered("other"))
    assert len(paused) >= MAX_PAGES_FOUND - 1


def test_o4_the_job_runs_since_an_instant_are_listed(emr: Emr) -> None:
    names = {emr.started(number).request.name for number in range(3)}
    missing: list[str] = []
    found = list(started_since(emr.target, [emr.application], SystemClock().now() - 24 * HOUR, missing.append))
    assert missing == []
    assert {each.name for each in found} == names
    assert {each.target_id.count("/") for each in found} == {1}
    assert all(abs(each.at - SystemClock().now()) < 25 * HOUR for each in found)


@pytest.mark.parametrize("code", ["ResourceNotFoundException", "AccessDeniedException"])
def test_o4_an_application_that_is_gone_is_left_out(code: str) -> None:
    """The runs of an application that may not be listed may go on, and the repair would start them again."""

    class Denied(Listing):
        def list_job_runs(self, **asked: Any) -> dict[str, Any]:
            if asked["applicationId"] == "00gone":
                raise ClientError({"Error": {"Code": code, "Message": "no"}}, "ListJobRuns")
            return {"jobRuns": [{"id": "jr1", "name": "run1", "createdAt": datetime.fromtimestamp(NOON / 1000, UTC)}]}

    target, _ = finding(Denied({}))
    missing: list[str] = []
    found = started_since(target, ("00gone", "00app"), NOON, missing.append)
    if code == "AccessDeniedException":
        with pytest.raises(ClientError):
            list(found)
        return
    assert [each.target_id for each in found] == ["00app/jr1"]
    assert missing == ["00gone"]
