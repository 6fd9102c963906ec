"""The actions of the example of docs/engines/batch.md."""

from __future__ import annotations

from collections.abc import Callable

from tests.docs.target_stories import ExecutionStory
from tests.support.batch_jobs import BatchJob


class BatchStory(ExecutionStory):
    def job(self, status: str, why: str = "", **container: object) -> None:
        """The newest job reaches a state, and its event comes."""
        named = f": {why}" if why else ""
        self._tell(f"the job is {status}{named}{f', exit code {code}' if (code := container.get('exitCode')) else ''}")
        self.world.batch_says(self._job(), status, why, **container)
        self._settle()

    def answer_is_lost(self) -> None:
        """The next submission gets no answer."""
        self.world.targets.batch_jobs.lose_answers = 1

    def count_jobs(self) -> None:
        names = {job.name for job in self.world.targets.batch_jobs.jobs.values()}
        self._tell(f"Batch has had {len(self.world.targets.batch_jobs.jobs)} jobs, of {len(names)} names")

    def stays(self, status: str) -> None:
        self._job().status = status
        self._tell(f"the job is {status}")

    def terminated(self) -> None:
        """The description of the newest job at Batch."""
        self._tell(f"the job is {self._job().status}: {self._job().why}")

    def _job(self) -> BatchJob:
        return list(self.world.targets.batch_jobs.jobs.values())[-1]


def batch(story: BatchStory) -> None:
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
    story.terminated()


STORIES: dict[str, Callable[[BatchStory], None]] = {"batch": batch}
