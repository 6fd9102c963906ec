"""An SQS queue as a target: one message per run, at least once. A consumer detects repeats by the run's id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chalicelib.aws.targets import envelope, formats
from chalicelib.aws.targets.aws_errors import answer_of
from chalicelib.aws.targets.clients import DELIVERY, Clients
from chalicelib.aws.targets.envelope import MAX_BYTES, Call
from chalicelib.aws.targets.no_lifecycle import Untracked
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, Started
from chalicelib.settings import Settings

Entry = dict[str, Any]


class SqsTarget(Untracked):
    def __init__(self, client: Any) -> None:
        self._client = client

    def start_many(self, calls: Sequence[Call]) -> list[Answer]:
        return envelope.in_batches("SQS", calls, lambda run: str(run.request.target["queue_url"]), _build, self._send)

    def _send(self, queue_url: str, entries: Sequence[tuple[Run, Entry]]) -> Sequence[Answer]:
        named = [{"Id": str(index), **entry} for index, (_, entry) in enumerate(entries)]
        if len(entries) == 1:
            answer = self._client.send_message(QueueUrl=queue_url, **entries[0][1])
            return [Started(str(answer["MessageId"]), done=True)]
        answer = self._client.send_message_batch(QueueUrl=queue_url, Entries=named)
        return batch_answers("SQS", len(entries), answer)


def batch_answers(service: str, count: int, answer: Mapping[str, Any]) -> list[Answer]:
    """The answers to a batch of SQS or SNS, by the ids of its entries. An entry that the result omits has no answer."""
    answers: list[Answer] = [NoAnswer(f"{service} gave no answer to this entry of a batch")] * count
    for taken in answer.get("Successful", ()):
        answers[int(taken["Id"])] = Started(str(taken["MessageId"]), done=True)
    for failed in answer.get("Failed", ()):
        # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_BatchResultErrorEntry.html
        code = str(failed.get("Code", ""))
        unknown = not failed.get("SenderFault") and "hrottl" not in code
        answers[int(failed["Id"])] = answer_of(service, code, str(failed.get("Message", "")), 500 if unknown else 0)
    return answers


def _build(run: Run, context: Mapping[str, Any]) -> tuple[Entry, int] | Never:
    text, typed = formats.message(run, context)
    entry: Entry = {"MessageBody": text, "MessageAttributes": typed}
    if str(run.request.target["queue_url"]).endswith(".fifo"):
        entry |= envelope.fifo(run)
    size = envelope.size_of(text, typed)
    return (entry, size) if size <= MAX_BYTES else envelope.too_large("SQS", size)


def build(clients: Clients, settings: Settings) -> SqsTarget:
    del settings
    return SqsTarget(clients.make("sqs", **DELIVERY))
