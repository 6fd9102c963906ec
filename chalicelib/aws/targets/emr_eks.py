"""EMR on EKS as a target: start, poll, find and cancel job runs.

The client token follows from the attempt. StartJobRun with a token that EMR has seen starts nothing, and answers the
job run of the first call, even if that has ended. No page says for how long. A call that is repeated after more than
``TOKEN`` searches first.
https://docs.aws.amazon.com/emr-on-eks/latest/APIReference/API_StartJobRun.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.aws.targets.aws_errors import code_of
from chalicelib.aws.targets.clients import Clients
from chalicelib.aws.targets.emr_serverless import driver_of
from chalicelib.aws.targets.engine import CALL, SETTLED, Engine
from chalicelib.core.instants import HOUR, MINUTE, Millis
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, RunUpdate, SearchLimit, Started
from chalicelib.core.targets.emr_eks import cluster_and_run, cluster_id, id_of, job_name, log_address, update_of
from chalicelib.core.targets.target import first_call
from chalicelib.settings import Settings

TOKEN: Millis = HOUR
CLOCKS: Millis = 2 * MINUTE  # the largest expected difference between EMR's clock and Sluice's
MAX_PAGES = 20  # of a listing by the name of one attempt, which may have empty pages
MISSING = "ResourceNotFoundException"
_GOING = ("PENDING", "SUBMITTED", "RUNNING")


class EmrEksTarget(Engine):
    """A listing has no reasons of failures, so job runs are polled one by one."""

    name, start_call, one = "EMR on EKS", "StartJobRun", "job run"
    never: ClassVar = ("AccessDeniedException", MISSING, "ValidationException")
    no_answer: ClassVar = (*Engine.no_answer, "InternalServerException")

    def begin(self, run: Run, context: Mapping[str, Any]) -> Answer:
        region, wanted = self._client.meta.region_name, str(run.request.target["virtual_cluster"]).split(":")
        if len(wanted) > 3 and wanted[3] != region:
            return Never(f"expected a virtual cluster in the region of the stack, {region}, got {':'.join(wanted)}")
        if run.unknown_answer and self._now() - first_call(run) >= TOKEN and (known := self._searched(run)) is not None:
            return known
        answer = self._client.start_job_run(**request_of(run))
        return Started(id_of(answer["virtualClusterId"], answer["id"]))

    def _searched(self, run: Run) -> Answer | None:
        """The answer of a search before a call whose token EMR may have forgotten; None if the call may be made."""
        try:
            found = self.find(run)
        except (BotoCoreError, ClientError, SearchLimit) as error:
            return NoAnswer(f"a call gave no answer, and the search for what it started failed: {error}", SETTLED)
        if found is not None:
            return Started(found)
        late = "a call gave no answer, and the search for what it started took too long"
        return NoAnswer(late, SETTLED) if self.is_late(run) else None

    def ask(self, target_ids: Sequence[str]) -> Mapping[str, RunUpdate | None]:
        [target_id] = target_ids
        found = self._described(target_id)
        return {} if found is None else {target_id: update_of(found, self._now())}

    def find(self, run: Run) -> str | None:
        """The job run with the name of this attempt. Raises `SearchLimit` if the listing does not end."""
        cluster, name = cluster_id(str(run.request.target["virtual_cluster"])), job_name(run)
        since = datetime.fromtimestamp((first_call(run) - CLOCKS) / 1000, UTC)
        asked: dict[str, Any] = {"virtualClusterId": cluster, "name": name, "createdAfter": since}
        for _ in range(MAX_PAGES):
            page = self.twice(self._client.list_job_runs, **asked)
            for each in page.get("jobRuns", ()):
                if each.get("name") == name:
                    return id_of(cluster, each["id"])
            if not page.get("nextToken"):
                return None
            asked["nextToken"] = page["nextToken"]
        raise SearchLimit(f"expected job run {name} within {MAX_PAGES} pages of virtual cluster {cluster}, got more")

    def stop(self, target_id: str, why: str) -> None:
        cluster, job_run = cluster_and_run(target_id)
        try:
            self.twice(self._client.cancel_job_run, virtualClusterId=cluster, id=job_run)
        except ClientError as error:
            if code_of(error) not in (MISSING, "ValidationException"):
                raise
            found = self._described(target_id)
            if found is not None and found["state"] in _GOING:
                raise

    def _described(self, target_id: str) -> Mapping[str, Any] | None:
        cluster, job_run = cluster_and_run(target_id)
        try:
            answer = self.twice(self._client.describe_job_run, virtualClusterId=cluster, id=job_run)
        except ClientError as error:
            if code_of(error) == MISSING:
                return None
            raise
        found: Mapping[str, Any] = answer["jobRun"]
        return found


def request_of(run: Run) -> dict[str, Any]:
    """The StartJobRun request of a run, derived from the stored row alone."""
    target = run.request.target
    return {
        "virtualClusterId": cluster_id(str(target["virtual_cluster"])),
        "name": job_name(run),
        "clientToken": run.request.client_token,
        "executionRoleArn": target["execution_role_arn"],
        "releaseLabel": target["release"],
        "jobDriver": {"sparkSubmitJobDriver": driver_of(run)},
        "configurationOverrides": {
            "monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": log_address(run)}}
        },
    }


def build(clients: Clients, settings: Settings) -> EmrEksTarget:
    del settings
    return EmrEksTarget(clients.make("emr-containers", **CALL), clients.now)
