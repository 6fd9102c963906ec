"""What only an AWS account can settle: the list of `account.yaml`, and what a smoke test says of each entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from infra import support, yaml_tags

FILE = Path(__file__).with_name("account.yaml")
# Concurrent Lambdas with which a burst of 1,000 jobs runs undisturbed: four of `burst`, five for each of the other
# three queues, with which Lambda begins to poll, and one each of `api`, `tick`, `run_state` and `lake`.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
BURST_LAMBDAS = 4 + 3 * 5 + 4
YES, NO, OPEN = "yes", "no", "open"
Aws = Callable[[str], Any]


@dataclass(frozen=True)
class Question:
    """One assumption about AWS, how a person checks it, and what answers it in a smoke test, if anything does."""

    claim: str
    how: str
    shown_by: str = ""
    measured_by: str = ""
    look: str = ""


@dataclass(frozen=True)
class Answer:
    """Whether a claim holds (`YES`, `NO`, or `OPEN` if nothing has shown it), with what was seen."""

    verdict: str
    seen: str


@cache
def questions() -> dict[str, Question]:
    """All entries by their name."""
    return {name: Question(**each) for name, each in yaml_tags.load(FILE.read_text()).items()}


def answers(results: Mapping[str, tuple[bool, str]], aws: Aws | None, outputs: Mapping[str, str]) -> dict[str, Answer]:
    """The answer to each question.

    ``results`` are those of the checks of a smoke test: whether it passed, and what it measured or why it failed.
    ``aws`` makes clients of the account; it is None for the local cloud, which can settle nothing."""
    return {name: _answer(question, results, aws, outputs) for name, question in questions().items()}


def _answer(
    question: Question, results: Mapping[str, tuple[bool, str]], aws: Aws | None, outputs: Mapping[str, str]
) -> Answer:
    if aws is not None and question.look:
        try:
            return LOOKS[question.look](aws, outputs)
        except (ClientError, BotoCoreError) as error:
            return Answer(OPEN, f"{error} {question.how}")
    wanted = question.shown_by or question.measured_by
    passed, seen = next((result for name, result in results.items() if wanted and name.startswith(wanted)), (None, ""))
    if aws is None or passed is None:
        return Answer(OPEN, question.how)
    if question.measured_by:
        return Answer(OPEN, f"{seen}. {question.how}")
    return Answer(YES if passed else NO, seen)


def _release(aws: Aws, outputs: Mapping[str, str]) -> Answer:
    made = aws("emr-serverless").get_application(applicationId=outputs["EmrApplicationId"])["application"]
    label = made["releaseLabel"]
    known = support.labels().get(label)
    if known is None:
        return Answer(OPEN, f"{label}, whose end of support infra/support.yaml does not have")
    ends = list(support.ending([known], support.labels(), datetime.now(UTC).date()))
    return Answer(NO, ends[0]) if ends else Answer(YES, f"{label}, supported until {known.until}")


def _stages(aws: Aws, outputs: Mapping[str, str]) -> Answer:
    api = outputs["ApiUrl"].partition("//")[2].partition(".")[0]
    names = sorted(stage["stageName"] for stage in aws("apigateway").get_stages(restApiId=api)["item"])
    others = [name for name in names if name != "api"]
    remove = [f"aws apigateway delete-stage --rest-api-id {api} --stage-name {name}" for name in others]
    return Answer(NO if others else YES, "; ".join([", ".join(names), *remove]))


def _concurrency(aws: Aws, outputs: Mapping[str, str]) -> Answer:
    free = int(aws("lambda").get_account_settings()["AccountLimit"]["UnreservedConcurrentExecutions"])
    found = f"{free:,} that are not reserved, and a burst of a thousand needs {BURST_LAMBDAS}"
    return Answer(YES if free >= BURST_LAMBDAS else NO, found)


LOOKS: Mapping[str, Callable[[Aws, Mapping[str, str]], Answer]] = {
    "release": _release,
    "stages": _stages,
    "concurrency": _concurrency,
}
