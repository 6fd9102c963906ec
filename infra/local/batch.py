"""AWS Batch on the local cloud: the container of a job is a process (`containers.py`).

ministack's jobs succeed at once, and it neither terminates nor filters them. Here a job goes through SUBMITTED,
RUNNABLE, STARTING and RUNNING to SUCCEEDED or FAILED, each change is an event of EventBridge, and TerminateJob ends the
process. SubmitJob refuses what Batch refuses, also for a queue that is disabled, and ListJobs filters by name.

At most `MAX_JOBS` run at a time. A job that needs more vCPUs than each compute environment of its queue has stays
RUNNABLE, with Batch's reason. A job makes one attempt. A container without a command would run that of its image, which
is not here: it cannot be pulled.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from infra.local import service_model
from infra.local.containers import CannotPull, CannotStart, Container, command_of, credentials_of, environment, log_into

_LOG = logging.getLogger("sluice.local")
MAX_JOBS = 50
LOG_GROUP = "/aws/batch/job"
TOO_LARGE = (
    "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE - CE(s) associated with the job queue cannot meet the CPU "
    "requirement of the job."
)
CUT_OFF = "Host EC2 (the local cloud was stopped) terminated."
TIMED_OUT = "Job attempt duration exceeded timeout"
_ENDED = ("SUCCEEDED", "FAILED")
_BETWEEN_STATES = 0.1  # seconds
_POLL = 0.05  # seconds
_OF_DEFINITION = ("parameters", "timeout", "platformCapabilities")  # what ministack does not keep
Answer = tuple[int, dict[str, str], bytes]


def install(batch: Any, logs: Any, eventbridge: Any, lambda_runtime: Any, endpoint: str) -> None:
    """Change this module of ministack. `endpoint` is the address of the local cloud for the containers."""
    jobs = _Jobs(batch, logs, eventbridge, lambda_runtime, endpoint)
    jobs.register = batch._DISPATCH["/v1/registerjobdefinition"]
    batch._DISPATCH |= {
        "/v1/registerjobdefinition": jobs.register_definition,
        "/v1/updatejobqueue": jobs.update_queue,
        "/v1/submitjob": jobs.submit,
        "/v1/listjobs": jobs.list_jobs,
        "/v1/terminatejob": partial(jobs.terminate, begun=True),
        "/v1/canceljob": partial(jobs.terminate, begun=False),
    }
    restore = batch._restore_state

    def restored(data: Any) -> None:
        restore(data)
        for _, job in batch._jobs.all_items():
            if job["status"] not in _ENDED:
                job.update(status="FAILED", statusReason=CUT_OFF, stoppedAt=batch._now_ms())

    batch._restore_state = restored


def check_permissions(iam_actions: Any, iam_evaluator: Any, batch: Any) -> None:
    """Let ministack check SubmitJob on the queue, and TerminateJob on the job with its tags."""
    known, enforce = iam_actions.extract_resource_arn, iam_evaluator.enforce

    def resource(service: str, method: str, path: str, headers: Any, body: bytes, *more: Any) -> str:
        if service != "batch":
            return str(known(service, method, path, headers, body, *more))
        asked, operation = json.loads(body or b"{}"), path.rstrip("/").lower().rpartition("/")[2]
        if operation == "submitjob":
            return _arn(asked.get("jobQueue", ""), batch._jq_arn)
        return batch._job_arn(asked.get("jobId", "")) if operation == "terminatejob" else "*"

    def checked(key: str, action: str, service: str, *more: Any, resource_arn: str = "*", **context: Any) -> Any:
        job = batch._jobs.get(resource_arn.rpartition("/")[2]) if service == "batch" else None
        if job is not None:
            tags = {f"aws:resourcetag/{name.lower()}": tag for name, tag in job["tags"].items()}
            context["service_context"] = {**(context.get("service_context") or {}), **tags}
        return enforce(key, action, service, *more, resource_arn=resource_arn, **context)

    iam_actions.extract_resource_arn, iam_evaluator.enforce = resource, checked


class _Jobs:
    def __init__(self, batch: Any, logs: Any, eventbridge: Any, lambda_runtime: Any, endpoint: str) -> None:
        self._batch, self._logs, self._eventbridge = batch, logs, eventbridge
        self._lambda_runtime, self._endpoint = lambda_runtime, endpoint
        self._stops: dict[str, list[str]] = {}  # by job: the reasons of the stops that were requested
        self._room = threading.BoundedSemaphore(MAX_JOBS)
        self.register: Any = None  # ministack's own RegisterJobDefinition

    def register_definition(self, asked: dict[str, Any]) -> Answer:
        answer: Answer = self.register(asked)
        if answer[0] == 200:
            made = self._batch._job_definitions[asked["jobDefinitionName"]][-1]
            made.update({name: asked[name] for name in _OF_DEFINITION if name in asked})
        return answer

    def update_queue(self, asked: dict[str, Any]) -> Answer:
        queue = self._queue(asked.get("jobQueue", ""))
        if queue is None:
            return _refused(f"Object does not exist: {asked.get('jobQueue')}")
        queue.update({name: asked[name] for name in ("state", "priority", "computeEnvironmentOrder") if name in asked})
        return _json({"jobQueueName": queue["jobQueueName"], "jobQueueArn": queue["jobQueueArn"]})

    def submit(self, asked: dict[str, Any]) -> Answer:
        if problems := service_model.problems("batch", "SubmitJob", asked):
            return _refused(f"Error executing request, Exception : {'; '.join(problems)}")
        queue, definition = self._queue(asked["jobQueue"]), self._definition(asked["jobDefinition"])
        if queue is None:
            return _refused(f"Job queue {asked['jobQueue']} not found.")
        if queue["state"] != "ENABLED":
            return _refused(f"Job queue {asked['jobQueue']} is not in state ENABLED")
        if definition is None:
            return _refused(f"JobDefinition name {asked['jobDefinition']} does not exist or is not in ACTIVE status")
        job = self._made(asked, queue, definition)
        self._batch._jobs[job["jobId"]] = job
        self._stops[job["jobId"]] = []
        place = self._batch.get_account_id(), self._batch.get_region()
        threading.Thread(target=self._play, args=(job, queue, *place), name=f"job-{job['jobId']}", daemon=True).start()
        return _json({name: job[name] for name in ("jobId", "jobName", "jobArn")})

    def list_jobs(self, asked: dict[str, Any]) -> Answer:
        if problems := service_model.problems("batch", "ListJobs", asked):
            return _refused("; ".join(problems))
        queue = self._queue(asked.get("jobQueue", ""))
        if queue is None:
            return _refused(f"Job queue {asked.get('jobQueue')} not found.")
        found = [job for job in self._batch._jobs.values() if job["jobQueue"] == queue["jobQueueArn"]]
        filters = asked.get("filters", ())
        for each in filters:
            if each["name"] != "JOB_NAME":
                return _refused(f"the local cloud filters by JOB_NAME alone, not by {each['name']}")
            found = [job for job in found if any(_is_named(job["jobName"], name) for name in each["values"])]
        if not filters:
            found = [job for job in found if job["status"] == asked.get("jobStatus", "RUNNING")]
        found.sort(key=lambda job: -job["createdAt"])
        first, size = int(asked.get("nextToken") or 0), int(asked.get("maxResults") or 100)
        kept = ("jobId", "jobArn", "jobName", "status", "statusReason", "createdAt", "startedAt", "stoppedAt")
        page = [{name: job[name] for name in kept if name in job} for job in found[first : first + size]]
        more = {"nextToken": str(first + size)} if found[first + size :] else {}
        return _json({"jobSummaryList": page, **more})

    def terminate(self, asked: dict[str, Any], begun: bool) -> Answer:
        """Stop a job. One that has begun is only stopped if ``begun``, which is TerminateJob."""
        if problems := service_model.problems("batch", "TerminateJob", asked):
            return _refused("; ".join(problems))
        job = self._batch._jobs.get(asked["jobId"])
        if job is None:
            return _refused(f"Job {asked['jobId']} does not exist")
        if job["status"] not in _ENDED and (begun or job["status"] not in ("STARTING", "RUNNING")):
            self._stops[job["jobId"]].append(asked["reason"])
        return _json({})

    def _queue(self, name: str) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._batch._job_queues.get(name.rpartition("/")[2])
        return found

    def _definition(self, name: str) -> dict[str, Any] | None:
        """The job definition with this name or ARN; the newest active revision if none is named."""
        family, _, revision = name.rpartition("/")[2].partition(":")
        revisions = [each for each in self._batch._job_definitions.get(family, ()) if each["status"] == "ACTIVE"]
        if revision:
            revisions = [each for each in revisions if str(each["revision"]) == revision]
        return revisions[-1] if revisions else None

    def _made(
        self, asked: Mapping[str, Any], queue: Mapping[str, Any], definition: Mapping[str, Any]
    ) -> dict[str, Any]:
        own, container = asked.get("containerOverrides", {}), definition["containerProperties"]
        job_id = self._batch.new_uuid()
        variables = _by("name", container.get("environment", ())) | _by("name", own.get("environment", ()))
        needs = _by("type", container.get("resourceRequirements", ())) | _by(
            "type", own.get("resourceRequirements", ())
        )
        timeout = asked.get("timeout") or definition.get("timeout")
        return {
            "jobId": job_id,
            "jobArn": self._batch._job_arn(job_id),
            "jobName": asked["jobName"],
            "jobQueue": queue["jobQueueArn"],
            "jobDefinition": definition["jobDefinitionArn"],
            "status": "SUBMITTED",
            "attempts": [],
            "createdAt": self._batch._now_ms(),
            "dependsOn": [],
            "parameters": {**definition.get("parameters", {}), **asked.get("parameters", {})},
            "retryStrategy": asked.get("retryStrategy", {"attempts": 1}),
            **({"timeout": timeout} if timeout else {}),
            "tags": asked.get("tags", {}),
            "platformCapabilities": definition.get("platformCapabilities", ["EC2"]),
            "container": {
                **container,
                "command": own.get("command") or container.get("command", []),
                "environment": list(variables.values()),
                "resourceRequirements": list(needs.values()),
            },
        }

    def _play(self, job: dict[str, Any], queue: Mapping[str, Any], account: str, region: str) -> None:
        """The life of a job, in a thread of its own."""
        from ministack.core.responses import request_scope  # late: ministack prints a banner at import

        with request_scope(account, region):
            try:
                self._run(job, queue)
            except Exception as error:
                _LOG.exception("job %s", job["jobId"])
                self._end(job, "FAILED", f"the local cloud failed: {error}")
            finally:
                self._stops.pop(job["jobId"], None)

    def _run(self, job: dict[str, Any], queue: Mapping[str, Any]) -> None:
        asked = self._stops[job["jobId"]]
        time.sleep(_BETWEEN_STATES)
        too_large = self._is_too_large(job, queue)
        self._tell(job, status="RUNNABLE", **({"statusReason": TOO_LARGE} if too_large else {}))
        while too_large or not self._room.acquire(timeout=_POLL):
            if asked:
                self._end(job, "FAILED", asked[0], isCancelled=True)
                return
            time.sleep(_POLL if too_large else 0)
        try:
            time.sleep(_BETWEEN_STATES)
            if asked:
                self._end(job, "FAILED", asked[0], isCancelled=True)
                return
            self._tell(job, status="STARTING")
            self._hold(job, asked)
        finally:
            self._room.release()

    def _hold(self, job: dict[str, Any], asked: list[str]) -> None:
        """Run the container of a job to its end."""
        try:
            container = self._start(job)
        except (CannotPull, CannotStart) as error:
            what = "CannotPullContainerError" if isinstance(error, CannotPull) else "CannotStartContainerError"
            job["container"]["reason"] = f"{what}: {error}"
            self._end(job, "FAILED", "Task failed to start")
            return
        try:
            self._tell(job, status="RUNNING", startedAt=self._batch._now_ms())
            limit = job.get("timeout", {}).get("attemptDurationSeconds")
            last = time.monotonic() + limit if limit else None
            while (code := container.wait(_POLL)) is None and not asked and (last is None or time.monotonic() < last):
                pass
            job["container"]["exitCode"] = container.stop() if code is None else code
        finally:
            container.stop(0)
        if code is not None:
            self._end(job, "FAILED" if code else "SUCCEEDED", "Essential container in task exited")
        elif asked:
            self._end(job, "FAILED", asked[0], isTerminated=True)
        else:
            self._end(job, "FAILED", TIMED_OUT)

    def _start(self, job: dict[str, Any]) -> Container:
        from ministack.core.responses import request_scope

        account, region = self._batch.get_account_id(), self._batch.get_region()
        own, task = job["container"], self._batch.new_uuid().replace("-", "")
        variables = {each["name"]: each["value"] for each in own["environment"]}
        variables |= {
            "AWS_BATCH_JOB_ID": job["jobId"],
            "AWS_BATCH_JOB_ATTEMPT": "1",
            "AWS_BATCH_JQ_NAME": job["jobQueue"].rpartition("/")[2],
        }
        words = [job["parameters"].get(word[5:], word) if word.startswith("Ref::") else word for word in own["command"]]
        role = own.get("jobRoleArn", "")
        credentials = credentials_of(self._lambda_runtime, role, account, region, f"job-{job['jobId']}")
        command = command_of(own.get("image", ""), command=words)
        stream = f"{job['jobDefinition'].rpartition('/')[2].partition(':')[0]}/default/{task}"
        own["logStreamName"] = stream
        write = log_into(self._logs, partial(request_scope, account, region), LOG_GROUP, stream, create_group=True)
        return Container(command, environment(variables, self._endpoint, region, credentials), write)

    def _is_too_large(self, job: Mapping[str, Any], queue: Mapping[str, Any]) -> bool:
        needs = _by("type", job["container"]["resourceRequirements"])
        vcpus = float(needs["VCPU"]["value"]) if "VCPU" in needs else 0.0
        most = list(self._sizes(queue))
        return bool(most) and vcpus > max(most)

    def _sizes(self, queue: Mapping[str, Any]) -> Iterator[float]:
        """The most vCPUs of each compute environment of a queue that says them."""
        for each in queue["computeEnvironmentOrder"]:
            found = self._batch._compute_envs.get(each["computeEnvironment"].rpartition("/")[2])
            if found is not None and "maxvCpus" in found["computeResources"]:
                yield float(found["computeResources"]["maxvCpus"])

    def _end(self, job: dict[str, Any], status: str, reason: str, **more: Any) -> None:
        self._tell(job, status=status, statusReason=reason, stoppedAt=self._batch._now_ms(), **more)

    def _tell(self, job: dict[str, Any], **changed: Any) -> None:
        """Change a job, and put the event of its state.

        https://docs.aws.amazon.com/batch/latest/userguide/batch_job_events.html
        """
        if changed["status"] == "STARTING":
            job.pop("statusReason", None)
        job.update(changed)
        entry = {
            "Source": "aws.batch",
            "DetailType": "Batch Job State Change",
            "Detail": json.dumps(job),
            "Resources": [job["jobArn"]],
        }
        self._eventbridge._put_events({"Entries": [entry]}, allow_aws_source=True)


def _by(key: str, entries: Any) -> dict[str, Any]:
    return {each[key]: each for each in entries}


def _is_named(name: str, wanted: str) -> bool:
    """Whether a name fits the value of a filter, which ignores the case of letters, and may end with ``*``."""
    name, wanted = name.lower(), wanted.lower()
    return name.startswith(wanted[:-1]) if wanted.endswith("*") else name == wanted


def _arn(name: str, arn_of: Callable[[str], str]) -> str:
    return name if name.startswith("arn:") else arn_of(name)


def _json(content: Mapping[str, Any]) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps(content).encode()


def _refused(message: str) -> Answer:
    headers = {"Content-Type": "application/json", "x-amzn-errortype": "ClientException"}
    return 400, headers, json.dumps({"__type": "ClientException", "message": message}).encode()
