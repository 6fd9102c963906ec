"""Glue jobs of the local cloud: the lifecycle of a job run, and its script as a process of this machine.

ministack runs the script of a Python shell job without its arguments and its role, reports the end of a Spark job that
never ran, knows neither the maximum concurrency nor the timeout of a job, stops no process, and sends no events. Here
the script of any job is a Python process with the arguments that Glue gives it, in the role of the job. A Spark job
has the Spark of this machine, without access to S3.
"""

from __future__ import annotations

import contextvars
import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from infra.local import service_model

GOING = ("STARTING", "RUNNING", "STOPPING", "WAITING")
_INHERITED = ("HOME", "JAVA_HOME", "LANG", "LC_ALL", "PATH", "USER")
SECONDS = 60.0  # of a minute of a timeout
_GRACE_S = 2.0  # between SIGTERM and SIGKILL
_MESSAGE = 2_000  # characters of standard error that an ErrorMessage has
_OWN = ("ExecutionProperty", "ExecutionClass", "JobRunQueuingEnabled")  # fields of a job that ministack drops


class Glue:
    """The job runs of a ministack. ``credentials`` returns the AWS variables of a role by its ARN, ``endpoint`` is the
    address of the local cloud."""

    def __init__(
        self, glue: Any, eventbridge: Any, credentials: Callable[[str], Mapping[str, str]], endpoint: str
    ) -> None:
        self._glue, self._eventbridge = glue, eventbridge
        self._credentials, self._endpoint = credentials, endpoint
        self._lock = threading.RLock()
        self._living: dict[str, subprocess.Popen[bytes]] = {}

    def create_job(self, create: Callable[[Any], Any], data: Mapping[str, Any]) -> Any:
        answer = create(data)
        if (job := self._glue._jobs.get(data.get("Name"))) is not None:
            job.update({name: data[name] for name in _OWN if name in data})
        return answer

    def start(self, data: Mapping[str, Any]) -> Any:
        name = data.get("JobName")
        job = self._glue._jobs.get(name)
        if job is None:
            return self._refused("EntityNotFoundException", f"Failed to start job run due to missing metadata: {name}")
        if problems := service_model.problems("glue", "StartJobRun", data):
            return self._refused("InvalidInputException", "; ".join(problems))
        most = int(job.get("ExecutionProperty", {}).get("MaxConcurrentRuns", 1))
        with self._lock:
            runs = self._glue._job_runs.setdefault(name, [])
            if sum(run["JobRunState"] in GOING for run in runs) >= most:
                return self._refused("ConcurrentRunsExceededException", f"Concurrent runs exceeded for {name}")
            run = _new_run(job, data)
            runs.append(run)
        self._in_thread(lambda: self._execute(job, run))
        return self._glue.json_response({"JobRunId": run["Id"]})

    def runs(self, data: Mapping[str, Any]) -> Any:
        """The job runs, newest first, in pages."""
        if data.get("JobName") not in self._glue._jobs:
            return self._refused("EntityNotFoundException", f"Failed to find job {data.get('JobName')}")
        newest = [_shown(run) for run in reversed(self._glue._job_runs.get(data["JobName"], []))]
        start, size = int(data.get("NextToken", 0)), int(data.get("MaxResults", 200))
        more = {"NextToken": str(start + size)} if start + size < len(newest) else {}
        return self._glue.json_response({"JobRuns": newest[start : start + size], **more})

    def run(self, data: Mapping[str, Any]) -> Any:
        for run in self._glue._job_runs.get(data.get("JobName"), []):
            if run["Id"] == data.get("RunId"):
                return self._glue.json_response({"JobRun": _shown(run)})
        return self._refused("EntityNotFoundException", f"JobRun {data.get('RunId')} not found")

    def stop(self, stop: Callable[[Any], Any], data: Mapping[str, Any]) -> Any:
        """Stop job runs, as ministack does, and the processes of those that it stops."""
        known = {run["Id"]: run for run in self._glue._job_runs.get(data.get("JobName"), [])}
        with self._lock:
            going = [known[each] for each in data.get("JobRunIds", ()) if _is_going(known.get(each))]
            answer = stop(data)
        for run in (each for each in going if each["JobRunState"] == "STOPPED"):
            run["ExecutionTime"] = run["CompletedOn"] - run["StartedOn"]
            _end(self._living.get(run["Id"]))
            self._in_thread(partial(self._tell, run))
        return answer

    def _execute(self, job: Mapping[str, Any], run: dict[str, Any]) -> None:
        script = self._glue._resolve_script(_script_of(job, run))
        if script is None:
            self._ends(run, "FAILED", f"LAUNCH ERROR | File Not Found: {_script_of(job, run)}")
            return
        try:
            process = self._launch(job, run, script)
        except OSError as error:
            self._ends(run, "FAILED", f"LAUNCH ERROR | {error}")
            return
        if process is None:
            return
        try:
            _, errors = process.communicate(timeout=SECONDS * int(run["Timeout"]))
        except subprocess.TimeoutExpired:
            _end(process)
            process.communicate()
            self._ends(run, "TIMEOUT", "Job run exceeded its timeout")
            return
        finally:
            self._living.pop(run["Id"], None)
        if process.returncode == 0:
            self._ends(run, "SUCCEEDED", "")
        else:
            last = errors.decode(errors="replace").strip().rpartition("\n")[2][-_MESSAGE:]
            self._ends(run, "FAILED", last or f"Command failed with exit code {process.returncode}")

    def _launch(self, job: Mapping[str, Any], run: dict[str, Any], script: str) -> subprocess.Popen[bytes] | None:
        """The process of a job run, which is RUNNING then; None for one that was stopped before."""
        arguments = [part for pair in arguments_of(job, run).items() for part in pair]
        environment = {
            **{name: os.environ[name] for name in _INHERITED if name in os.environ},
            **self._credentials(str(job.get("Role", ""))),
            "AWS_ENDPOINT_URL": self._endpoint,
            "AWS_DEFAULT_REGION": self._glue.get_region(),
            "AWS_REGION": self._glue.get_region(),
            "PYTHONPATH": os.pathsep.join(self._modules(job, run)),
        }
        with self._lock:
            if run["JobRunState"] != "STARTING":
                return None
            process = subprocess.Popen(
                [sys.executable, script, *arguments],
                env=environment,
                cwd="/tmp",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self._living[run["Id"]] = process
            run["JobRunState"] = "RUNNING"
            return process

    def _modules(self, job: Mapping[str, Any], run: Mapping[str, Any]) -> list[str]:
        """The folders of the Python files that the job is given; a zip is one itself."""
        given = {**job.get("DefaultArguments", {}), **run["Arguments"]}.get("--extra-py-files", "")
        files = [self._glue._resolve_script(each.strip()) for each in given.split(",") if each.strip()]
        return [file if file.endswith(".zip") else os.path.dirname(file) for file in files if file]

    def _ends(self, run: dict[str, Any], state: str, message: str) -> None:
        with self._lock:
            if not _is_going(run):
                return  # it was stopped
            now = time.time()
            run.update(JobRunState=state, ErrorMessage=message, CompletedOn=now, LastModifiedOn=now)
            run["ExecutionTime"] = int(now - run["StartedOn"])
        self._tell(run)

    def _tell(self, run: Mapping[str, Any]) -> None:
        """Send the event of an end.
        https://docs.aws.amazon.com/glue/latest/dg/automating-awsglue-with-cloudwatch-events.html"""
        state = run["JobRunState"]
        detail = {
            "jobName": run["JobName"],
            "severity": "INFO" if state in ("SUCCEEDED", "STOPPED") else "ERROR",
            "state": state,
            "jobRunId": run["Id"],
            "message": run["ErrorMessage"] or ("Job run succeeded" if state == "SUCCEEDED" else ""),
        }
        entry = {"Source": "aws.glue", "DetailType": "Glue Job State Change", "Detail": json.dumps(detail)}
        self._eventbridge._put_events({"Entries": [entry]}, allow_aws_source=True)

    def _in_thread(self, act: Callable[[], None]) -> None:
        """Run something beside the request, for its account and region."""
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(act,), name="glue-job-run", daemon=True).start()

    def _refused(self, code: str, message: str) -> Any:
        return self._glue.error_response_json(code, message, 400)


def install(glue: Any, eventbridge: Any, credentials: Callable[[str], Mapping[str, str]], endpoint: str) -> Glue:
    """Change this module of ministack."""
    made, create, stop = Glue(glue, eventbridge, credentials, endpoint), glue._create_job, glue._batch_stop_job_run
    glue._create_job = lambda data: made.create_job(create, data)
    glue._start_job_run, glue._get_job_run, glue._get_job_runs = made.start, made.run, made.runs
    glue._batch_stop_job_run = lambda data: made.stop(stop, data)
    return made


def arguments_of(job: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, str]:
    """The arguments that the script gets. A Spark job also gets what Glue says about the job run itself.
    https://docs.aws.amazon.com/glue/latest/dg/aws-glue-api-crawler-pyspark-extensions-get-resolved-options.html"""
    of_glue = {}
    if job.get("Command", {}).get("Name") in ("glueetl", "gluestreaming"):
        of_glue = {"--JOB_ID": f"j_{job['Name']}", "--JOB_RUN_ID": run["Id"], "--JOB_NAME": job["Name"]}
    return {
        **of_glue,
        **job.get("DefaultArguments", {}),
        **run["Arguments"],
        **job.get("NonOverridableArguments", {}),
    }


def _new_run(job: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    now = time.time()
    workers = data.get("NumberOfWorkers") or job.get("NumberOfWorkers") or 2
    is_shell = job.get("Command", {}).get("Name") == "pythonshell"
    return {
        "Id": f"jr_{uuid.uuid4().hex}{uuid.uuid4().hex}",
        "Attempt": 0,
        "JobName": data["JobName"],
        "StartedOn": now,
        "LastModifiedOn": now,
        "CompletedOn": None,
        "JobRunState": "STARTING",
        "Arguments": dict(data.get("Arguments", {})),
        "ErrorMessage": "",
        "PredecessorRuns": [],
        "ExecutionTime": 0,
        "Timeout": data.get("Timeout") or job.get("Timeout") or 2_880,
        "MaxCapacity": job.get("MaxCapacity") or (0.0625 if is_shell else float(workers)),
        "WorkerType": data.get("WorkerType") or job.get("WorkerType"),
        "NumberOfWorkers": workers,
        "ExecutionClass": data.get("ExecutionClass") or job.get("ExecutionClass") or "STANDARD",
        "GlueVersion": job.get("GlueVersion", "5.0"),
    }


def _shown(run: Mapping[str, Any]) -> dict[str, Any]:
    """A job run as Glue shows it: what it does not have yet is left out."""
    return {name: value for name, value in run.items() if value not in (None, "")}


def _script_of(job: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    return str(run["Arguments"].get("--scriptLocation") or job.get("Command", {}).get("ScriptLocation", ""))


def _is_going(run: Mapping[str, Any] | None) -> bool:
    return run is not None and run["JobRunState"] in GOING


def _end(process: subprocess.Popen[bytes] | None) -> None:
    """End a process and all that it has started."""
    if process is None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
            return
