"""An SNS topic as a target: one message per run, at least once, which SNS delivers to the subscribers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chalicelib.aws.targets import envelope, formats
from chalicelib.aws.targets.clients import DELIVERY, Clients
from chalicelib.aws.targets.envelope import MAX_BYTES, Call
from chalicelib.aws.targets.no_lifecycle import Untracked
from chalicelib.aws.targets.sqs import batch_answers
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never
from chalicelib.settings import Settings

Entry = dict[str, Any]


class SnsTarget(Untracked):
    def __init__(self, client: Any) -> None:
        self._client = client

    def start_many(self, calls: Sequence[Call]) -> list[Answer]:
        return envelope.in_batches("SNS", calls, lambda run: str(run.request.target["topic_arn"]), _build, self._send)

    def _send(self, topic_arn: str, entries: Sequence[tuple[Run, Entry]]) -> Sequence[Answer]:
        named = [{"Id": str(index), **entry} for index, (_, entry) in enumerate(entries)]
        answer = self._client.publish_batch(TopicArn=topic_arn, PublishBatchRequestEntries=named)
        return batch_answers("SNS", len(entries), answer)


def _build(run: Run, context: Mapping[str, Any]) -> tuple[Entry, int] | Never:
    target = run.request.target
    text, typed = formats.message(run, context)
    entry: Entry = {"Message": text, "MessageAttributes": typed}
    if target.get("subject"):
        entry["Subject"] = target["subject"]
    if str(target["topic_arn"]).endswith(".fifo"):
        entry |= envelope.fifo(run)
    size = envelope.size_of(text, typed) + len(str(target.get("subject") or ""))
    return (entry, size) if size <= MAX_BYTES else envelope.too_large("SNS", size)


def build(clients: Clients, settings: Settings) -> SnsTarget:
    del settings
    return SnsTarget(clients.make("sns", **DELIVERY))
