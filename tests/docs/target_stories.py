"""The actions of the examples of docs/targets.md, docs/aws-api.md and of the pages of engines. Each function plays one
example; the page holds its result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from chalicelib.core.instants import Instant
from chalicelib.core.rows.run import Run
from chalicelib.flow.runs import actions
from chalicelib.flow.views.views import run_view
from tests.docs.story import Story
from tests.support.api_calls import refused
from tests.support.batch_jobs import BatchJob
from tests.support.ecs_tasks import Task, event_of
from tests.support.eks_runs import EksRun
from tests.support.glue import GOING, GlueJob, JobRun
from tests.support.queries import MB, Query
from tests.support.state_machines import Execution
from tests.support.world import World, flights


class ExecutionStory(Story):
    """Workflows and schedules in the app of the pages, enabled on Monday, 2 March 2026, at 12:00 UTC."""

    def __init__(self, world: World, parts: dict[str, Any]) -> None:
        super().__init__(world, {})
        self.names, self.documents = list(parts["schedules"]), parts["schedules"]
        enabled = {name: {"enabled": True} | document for name, document in self.documents.items()}
        world.deploy(flights(enabled, **parts["workflows"]))
        world.settle()

    def begins(self) -> None:
        """Deliver the event of Step Functions that the execution is active."""
        self.world.execution_says(self._living(), "RUNNING")
        self._settle()

    def execution(self, status: str, **why: str) -> None:
        """An execution ends, and its event comes."""
        named = f": {', '.join(f'{name} {text!r}' for name, text in why.items())}" if why else ""
        self._tell(f"the execution is {status}{named}")
        self.world.execution_says(self._living(), status, **why)
        self._settle()

    def redriven(self, *statuses: str) -> None:
        """A user redrives the execution that failed, and the event of Step Functions arrives."""
        made = next(each for each in self._newest() if each.status == "FAILED")
        for status in statuses:
            self.world.execution_says(made, status)
            attempts = ", ".join(f"{run.attempt} is {run.state}" for run in self.world.runs(self.names[0]))
            self._tell(f"after a redrive in AWS the execution of attempt 1 is {status}; attempt {attempts}")
            self._settle()

    def cancels_run(self, who: str) -> None:
        self._tell(f"cancel the run, by {who}")
        actions.cancel(self.world.ports, self.world.runs(self.names[0])[-1].run_id, who)
        self._settle()

    def stopped(self) -> None:
        """The description of a stopped execution at Step Functions."""
        made = self._newest()[0]
        self._tell(f"the execution is {made.status}: error {made.error!r}, cause {made.cause!r}")

    def throttles(self, service: str) -> None:
        """The next call of AWS's API is throttled."""
        self._tell(f"{service} throttles the next call")
        self.world.targets.calls.refusals.append(refused("ThrottlingException", "Rate exceeded"))

    def called(self) -> None:
        """The calls since the last time, as AWS got them."""
        for name, request in self.world.targets.calls.made:
            self._tell(f"AWS gets {name} {json.dumps(request)}")
        self.world.targets.calls.made.clear()

    def _living(self) -> Execution:
        return next(each for each in self._newest() if each.status == "RUNNING")

    def _newest(self) -> list[Execution]:
        return list(reversed(self.world.targets.machines.executions.values()))

    def _changes(self) -> Iterator[tuple[Instant, str, str]]:
        yield from super()._changes()
        for name in self.names:
            for run in self.world.runs(name):
                if run.state_at is not None and run.state in ("SUCCEEDED", "RETRYING", "FAILED"):
                    why = f": {run.reason.text}" if run.reason.text else ""
                    yield (
                        run.state_at,
                        f"{run.run_id}#{run.attempt} {run.state}",
                        f"attempt {run.attempt} is {run.state}{why}",
                    )


def executions(story: ExecutionStory) -> None:
    story.ready(1)
    story.begins()
    story.passes("10m")
    story.execution("FAILED", error="States.TaskFailed", cause="no disk")
    story.passes("3m")
    story.begins()
    story.passes("20m")
    story.execution("SUCCEEDED")
    story.redriven("RUNNING", "SUCCEEDED")
    story.ready(2)
    story.begins()
    story.cancels_run("ada")
    story.stopped()


class TaskStory(ExecutionStory):
    """The tasks of workflows at ECS."""

    def runs(self) -> None:
        """Deliver the event of ECS that the task runs."""
        self.world.task_says(self._task())
        self._settle()

    def exits(self, code: int) -> None:
        self._tell(f"the program exits with code {code}")
        self.world.task_says(self._task(), code)
        self._settle()

    def is_not_pulled(self, why: str) -> None:
        self._tell("the image cannot be pulled")
        task = self._task()
        self.world.targets.tasks.fails_to_start(task, why)
        self.world.event(event_of(task, self.world.clock.now()))
        self._settle()

    def lacks_capacity(self) -> None:
        why = "Capacity is unavailable at this time."
        self._tell("Fargate has no capacity for a while")
        self.world.targets.tasks.failures = [{"reason": why}] * 2

    def waits(self) -> None:
        run = self.world.runs(self.names[0])[-1]
        self._tell(f"the run is {run.state}: {run.reason.text}")

    def stopped(self) -> None:
        task = list(self.world.targets.tasks.tasks.values())[-1]
        self._tell(f"the task is {task.status}: {task.stop_code}, {task.stopped_reason!r}")

    def _task(self) -> Task:
        return next(each for each in reversed(self.world.targets.tasks.tasks.values()) if each.status != "STOPPED")


def tasks(story: TaskStory) -> None:
    story.ready(1)
    story.runs()
    story.passes("10m")
    story.exits(1)
    story.passes("2m")
    story.runs()
    story.passes("20m")
    story.exits(0)
    story.ready(2)
    story.is_not_pulled("CannotPullContainerError: load:13: not found")
    story.passes("2m")
    story.runs()
    story.exits(0)
    story.lacks_capacity()
    story.ready(3)
    story.waits()
    story.passes("1m")
    story.runs()
    story.cancels_run("ada")
    story.stopped()


class BatchStory(ExecutionStory):
    """The jobs of workflows at AWS Batch."""

    def job(self, status: str, why: str = "", **container: Any) -> None:
        """The newest job reaches a state, and its event comes."""
        code = f", exit code {container['exitCode']}" if "exitCode" in container else ""
        self._tell(f"the job is {status}{f': {why}' if why else ''}{code}")
        self.world.batch_says(self._job(), status, why, **container)
        self._settle()

    def answer_is_lost(self) -> None:
        """The next submission gets no answer."""
        self.world.targets.batch_jobs.lose_answers = 1

    def count_jobs(self) -> None:
        made = self.world.targets.batch_jobs.jobs.values()
        self._tell(f"Batch has had {len(made)} jobs, with {len({job.name for job in made})} names")

    def stays(self, status: str) -> None:
        self._job().status = status
        self._tell(f"the job is {status}")

    def stopped(self) -> None:
        """The description of the newest job at Batch."""
        self._tell(f"the job is {self._job().status}: {self._job().why}")

    def _job(self) -> BatchJob:
        return list(self.world.targets.batch_jobs.jobs.values())[-1]


def jobs(story: BatchStory) -> None:
    story.ready(1)
    story.passes("1m")
    story.job("RUNNING")
    story.passes("9m")
    story.job("FAILED", "Host EC2 (instance i-0a1b2c3d) terminated.")
    story.passes("2m")
    story.job("RUNNING")
    story.passes("20m")
    story.job("SUCCEEDED")
    story.answer_is_lost()
    story.ready(2)
    story.passes("2m")
    story.count_jobs()
    story.job("RUNNING")
    story.job("FAILED", "Essential container in task exited", exitCode=3)
    story.ready(3)
    story.stays("RUNNABLE")
    story.passes("2h5m")
    story.stopped()


class JobRunStory(ExecutionStory):
    """The job runs of workflows at Glue."""

    def begins(self) -> None:
        """The job run begins. Glue tells nobody."""
        self._job_run().state = "RUNNING"

    def ends(self, state: str, message: str = "") -> None:
        """A job run ends, and its event comes."""
        self._tell(f"the job run is {state}{f': {message}' if message else ''}")
        self.world.job_run_says(self._job_run(), state, message)
        self._settle()

    def bill(self) -> None:
        billed = run_view(self._run(), self.world.ports.settings.prices)["billed"]
        assert billed is not None
        self._tell(f"it has used {billed['dpu_hours']:g} DPU-hours: ${billed['cost_usd']:.2f}")

    def loses_an_answer(self) -> None:
        self._tell("the answer of StartJobRun is lost, but a job run has started")
        self.world.targets.jobs.lose_answers = 1

    def is_full(self) -> None:
        self._tell("somebody has started as many runs of the job as it allows")
        self.world.targets.jobs.jobs["sluice-target-load"].concurrent = 0

    def has_room(self) -> None:
        self._tell("they have ended")
        self.world.targets.jobs.jobs["sluice-target-load"].concurrent = 1

    def state(self) -> None:
        run = self._run()
        why = f": {run.reason.text.partition(': Read timeout')[0]}" if run.reason.text else ""
        self._tell(f"the run is {run.state}{why}; Glue has {len(self.world.targets.jobs.runs)} job runs")

    def stopped(self) -> None:
        made = list(self.world.targets.jobs.runs.values())[-1]
        self._tell(f"the job run is {made.state}")

    def _run(self) -> Run:
        return self.world.runs(self.names[0])[-1]

    def _job_run(self) -> JobRun:
        return next(each for each in reversed(self.world.targets.jobs.runs.values()) if each.state in GOING)


def job_runs(story: JobRunStory) -> None:
    story.world.targets.jobs.jobs["sluice-target-load"] = GlueJob()
    story.ready(1)
    story.begins()
    story.passes("10m")
    story.ends("FAILED", "ValueError: no such column")
    story.passes("1m")
    story.begins()
    story.passes("18m")
    story.ends("SUCCEEDED")
    story.bill()
    story.loses_an_answer()
    story.ready(2)
    story.state()
    story.passes("2m")
    story.state()
    story.cancels_run("ada")
    story.stopped()
    story.is_full()
    story.ready(3)
    story.state()
    story.has_room()
    story.passes("1m")
    story.state()


def calls(story: ExecutionStory) -> None:
    story.world.targets.calls.answers["ssm:PutParameter"] = {"Version": 7}
    story.ready(1)
    story.called()
    story.throttles("SNS")
    story.ready(2)
    story.passes("5s")
    story.called()


class QueryStory(ExecutionStory):
    """The queries of a workflow at Athena."""

    def runs(self) -> None:
        """The newest query leaves the queue of Athena."""
        made = self._query()
        self._tell(f"Athena runs the query with {', '.join(made.asked['ExecutionParameters'])}")
        self.world.query_says(made, "RUNNING")
        self._settle()

    def query(self, state: str, reason: str = "", **changed: Any) -> None:
        """The query ends, and its event comes."""
        self._tell(f"the query is {state}{f': {reason}' if reason else ''}")
        self.world.query_says(self._query(), state, reason, **changed)
        self._settle()

    def ended(self) -> None:
        self._tell(f"the query is {self._query().state}")

    def _query(self) -> Query:
        return list(self.world.targets.queries.queries.values())[-1]


def queries(story: QueryStory) -> None:
    story.ready(1)
    story.runs()
    story.passes("2m")
    error = {"ErrorCategory": 1, "ErrorType": 1001, "Retryable": True}
    story.query("FAILED", "Query exhausted resources at this scale factor", error=error)
    story.passes("2m")
    story.runs()
    story.passes("3m")
    story.query("SUCCEEDED", scanned=70 * MB)
    story.ready(2)
    story.runs()
    story.cancels_run("ada")
    story.ended()


class EksStory(ExecutionStory):
    """The job runs of workflows at EMR on EKS."""

    def job_run(self, state: str, details: str = "", failure: str = "") -> None:
        """The newest job run reaches a state, and its event comes."""
        self._tell(f"the job run is {state}{f': {details}' if details else ''}")
        self.world.eks_says(self._job_run(), state, details, failure)
        self._settle()

    def answer_is_lost(self) -> None:
        self._tell("the answer of StartJobRun is lost, but a job run has started")
        self.world.targets.eks_runs.lose_answers = 1

    def state(self) -> None:
        run = self.world.runs(self.names[0])[-1]
        self._tell(f"the run is {run.state}; EMR has {len(self.world.targets.eks_runs.runs)} job runs")

    def stopped(self) -> None:
        self._tell(f"the job run is {self._job_run().state}")

    def _job_run(self) -> EksRun:
        return list(self.world.targets.eks_runs.runs.values())[-1]


def eks_runs(story: EksStory) -> None:
    story.ready(1)
    story.passes("1m")
    story.job_run("RUNNING")
    story.passes("9m")
    story.job_run("FAILED", "ValueError: no such column", "USER_ERROR")
    story.passes("2m")
    story.job_run("RUNNING")
    story.passes("20m")
    story.job_run("COMPLETED")
    story.answer_is_lost()
    story.ready(2)
    story.passes("2m")
    story.state()
    story.cancels_run("ada")
    story.stopped()


STORIES: dict[str, tuple[type[Any], Callable[[Any], None]]] = {
    "executions": (ExecutionStory, executions),
    "calls": (ExecutionStory, calls),
    "tasks": (TaskStory, tasks),
    "jobs": (BatchStory, jobs),
    "job_runs": (JobRunStory, job_runs),
    "queries": (QueryStory, queries),
    "eks_runs": (EksStory, eks_runs),
}
