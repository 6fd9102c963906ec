"""The actions of the examples of docs/messages.md. Each function plays one example; the page holds its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import Instant, iso
from chalicelib.flow.schedules import messages
from tests.docs.story import Documents, Story
from tests.support.world import SQS, World, flights

APP = "demo.flights"


class MessageStory(Story):
    """Messages in an app with a queue as its default target, put on Monday, 2 March 2026, at 12:00 UTC."""

    def __init__(self, world: World, documents: Documents) -> None:
        super().__init__(world, {})
        world.deploy(flights({}) | {"default_target": SQS})
        self.names = [f"~{name}" for name in documents]
        self.documents = documents
        for name, document in documents.items():
            world.message(name, **document)
        world.settle()

    def put_again(self, what: str, **changed: object) -> None:
        [(name, document)] = self.documents.items()
        self._tell(f"put {name}: {what}")
        self.world.message(name, **document | changed)
        self._settle()

    def get(self) -> None:
        """A read of a message: when it is sent next, or that it is deleted."""
        [name] = self.documents
        try:
            at = messages.get(self.world.ports, APP, name).next_fire
            self._tell(f"get {name}: next at {iso(at)}" if at is not None else f"get {name}: nothing more is due")
        except SluiceError as error:
            self._tell(f"get {name}: {error.message}")

    def passes_slowly(self, span: str) -> None:
        """Let a span of time pass, with hints at their instants."""
        self.world.pass_by(span)
        self._find()

    def _changes(self) -> Iterator[tuple[Instant, str, str]]:
        for full in self.names:
            name = full.removeprefix("~")
            for run in self.world.runs(full):
                carried = (run.request.data or {}).get("text")
                queue = run.request.target["type"] == "sqs"
                does = f"is sent: {carried or 'its context'}" if queue else f"starts {run.workflow.rpartition('.')[2]}"
                yield run.claimed_at, run.run_id, f"{name} {does}"
            for record in self.world.records(full):
                yield record.recorded_at, record.id, f"record {record.kind}: {record.reason.text}"


def beat(story: MessageStory) -> None:
    story.passes_slowly("1m")
    story.get()


def backup(story: MessageStory) -> None:
    story.get()
    story.passes("12h")
    story.passes("1d")
    story.get()


def reminder(story: MessageStory) -> None:
    story.passes("30m")
    story.passes("2m")
    story.get()


def twice(story: MessageStory) -> None:
    story.passes_slowly("15s")
    story.put_again("data is new", data="new")
    story.passes_slowly("1m")
    story.get()


def once(story: MessageStory) -> None:
    story.passes("5m")
    story.ends()
    story.passes("2m")
    story.get()


STORIES: dict[str, Callable[[MessageStory], None]] = {
    "beat": beat,
    "brief": beat,
    "backup": backup,
    "reminder": reminder,
    "twice": twice,
    "once": once,
}
