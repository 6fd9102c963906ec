"""The actions of the examples of docs/targets.md and of the pages of engines. Each function plays one example; the page
holds its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from chalicelib.core.instants import Instant
from chalicelib.flow.runs import actions
from tests.docs.story import Story
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


STORIES: dict[str, tuple[type[Any], Callable[[Any], None]]] = {
    "executions": (ExecutionStory, executions),
    "queries": (QueryStory, queries),
}
