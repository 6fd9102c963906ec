"""Each command line of the AWS CLI in the documents, and in what `infra` prints, is one that AWS's models accept.

The CLI makes its commands from botocore's models: `start-message-move-task --source-arn` is the member `SourceArn` of
`StartMessageMoveTask`. So botocore says whether a service, an operation or a parameter exists, and what is missing."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jmespath
import pytest
from botocore import xform_name
from botocore.loaders import Loader
from botocore.model import OperationModel, ServiceModel, Shape
from botocore.session import Session
from botocore.validate import ParamValidator

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("examples/**/*.md")])
PRINTED = sorted((ROOT / "infra").rglob("*.py"))
# Commands that the CLI has besides those of the models, each with the options that the documents use.
OWN = {
    ("s3", "ls"): {"recursive"},
    ("s3", "sync"): set(),
    ("s3", "rm"): set(),
    ("s3", "rb"): {"force"},
    ("cloudformation", "package"): {"template-file", "s3-bucket", "output-template-file"},
    ("cloudformation", "deploy"): {"template-file", "stack-name", "capabilities", "parameter-overrides", "s3-bucket"},
}
GLOBAL = {"query", "output", "region", "profile", "endpoint-url"}
NAMES = {"s3api": "s3"}  # the CLI's name of a service: that of botocore
RENAMED = {
    ("sns", "subscribe"): {"notification-endpoint": "endpoint"}
}  # options whose names are not those of the model
WORD = "X" * 36  # for a placeholder; long enough for every parameter
# What the model leaves open, and a runbook may not: messages that EventBridge put into dead letters have no queue of
# their own, and SQS does not move them without a destination.
DEMANDED = {("sqs", "start-message-move-task"): {"destination-arn"}}
Command = tuple[str, str]  # where, and the text


def commands_of_page(text: str) -> Iterator[str]:
    """The commands in blocks and between backticks. A placeholder such as <stack> is a word."""
    blocks = re.findall(r"^ *```\w*\n(.*?)^ *```", text, flags=re.S | re.M)
    inline = re.findall(r"`(aws [^`]+)`", re.sub(r"^ *```\w*\n.*?^ *```", "", text, flags=re.S | re.M))
    for code in (*blocks, *(one.replace("\n", " ") for one in inline)):
        whole = re.sub(r"<[^<>\n]*>", WORD, re.sub(r"\\\n\s*", " ", code))
        yield from re.findall(r"(?:^|[$(]|&& |do )\s*(aws [a-z0-9-]+ [a-z0-9-]+.*)$", whole, flags=re.M)


def commands_of_code(text: str) -> Iterator[str]:
    """The commands with options in strings. A value that is filled in is a word."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else WORD for part in node.values)
            yield from re.findall(r"aws [a-z0-9-]+ [a-z0-9-]+ --[^`)&]+", "".join(map(str, parts)))


def all_commands() -> list[Command]:
    pages = ((path, commands_of_page(path.read_text())) for path in PAGES)
    code = ((path, commands_of_code(path.read_text())) for path in PRINTED)
    return [(str(path.relative_to(ROOT)), one) for path, found in (*pages, *code) for one in found]


@cache
def service(name: str) -> ServiceModel:
    return ServiceModel(Loader().load_service_model(NAMES.get(name, name), "service-2"), name)


def words_of(command: str) -> list[str]:
    """The words up to the end of the command: a comment, a redirection, or what closes it."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|;>)")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word[0] in "|;>)":
            break
        words.append(word)
    return words


def options_of(words: list[str]) -> dict[str, list[str]]:
    options: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            options[word[2:]] = []
        elif options:
            options[list(options)[-1]].append(word)
    return options


def value_of(shape: Shape, words: list[str]) -> Any:
    """What the CLI sends for the words of an option."""
    if shape.type_name == "boolean":
        return True
    assert words, f"expected a value of {shape.name}"
    if words[0].startswith("file://"):
        return {}
    if words[0][0] in "{[":
        return json.loads(words[0])
    if shape.type_name == "list":
        return words
    assert shape.type_name not in ("structure", "map"), f"expected JSON for {shape.name}, got {words[0]}"
    enum = getattr(shape, "enum", [])
    assert not enum or words[0] in enum, f"expected one of {enum}, got {words[0]}"
    return int(words[0]) if shape.type_name in ("integer", "long") else words[0]


def problems(command: str) -> list[str]:
    """What is wrong with a command."""
    _, name, action, *rest = words_of(command)
    given = options_of(rest)
    if "query" in given:
        jmespath.compile(given["query"][0])
    own = RENAMED.get((name, action), {})
    options = {own.get(option, option): words for option, words in given.items() if option not in GLOBAL}
    missing = DEMANDED.get((name, action), set()) - options.keys()
    if missing:
        return [f"expected --{', --'.join(missing)}"]
    if (name, action) in OWN:
        return [f"unknown option --{option}" for option in options.keys() - OWN[name, action]]
    if NAMES.get(name, name) not in Session().get_available_services():
        return [f"unknown service {name}"]
    known = {xform_name(one, "-"): one for one in service(name).operation_names}
    if action not in known:
        return [f"unknown operation {action}"]
    return _of_operation(service(name).operation_model(known[action]), options)


def _of_operation(operation: OperationModel, options: dict[str, list[str]]) -> list[str]:
    members = operation.input_shape.members if operation.input_shape else {}
    by_option = {xform_name(one, "-"): one for one in members}
    unknown = [option for option in options if option.removeprefix("no-") not in by_option and option not in by_option]
    if unknown:
        return [f"unknown option --{option}" for option in unknown]
    sent = {one: "X" for one, shape in members.items() if shape.metadata.get("idempotencyToken")}
    for option, words in options.items():
        member = by_option.get(option) or by_option[option.removeprefix("no-")]
        sent[member] = value_of(members[member], words)
    if operation.input_shape is None:
        return []
    report = ParamValidator().validate(sent, operation.input_shape)
    return [report.generate_report()] if report.has_errors() else []


@pytest.mark.parametrize(("where", "command"), all_commands(), ids=lambda one: one[:80])
def test_a_command_of_the_aws_cli_is_one_that_aws_accepts(where: str, command: str) -> None:
    assert problems(command) == [], f"{where}: {command}"


def test_commands_are_found_in_blocks_lines_and_printed_texts() -> None:
    where = {page for page, _ in all_commands()}
    assert {"docs/operations.md", "docs/deployment.md", "docs/coming-from/eventbridge.md", "infra/undeploy.py"} <= where
    block = (
        "text `aws sqs purge-queue\n--queue-url <url>` text\n"
        "```\n$ aws s3 rb X && x\n  aws sns publish \\\n    --message m\n```\n"
    )
    assert sorted(commands_of_page(block)) == [
        "aws s3 rb X && x", "aws sns publish  --message m", f"aws sqs purge-queue --queue-url {WORD}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("aws sqz purge-queue --queue-url X", "unknown service sqz"),
        ("aws sqs purge-queues --queue-url X", "unknown operation purge-queues"),
        ("aws sqs purge-queue --url X", "unknown option --url"),
        ("aws sqs purge-queue", 'Missing required parameter in input: "QueueUrl"'),
        ("aws sqs start-message-move-task --source-arn X", "expected --destination-arn"),
        ("aws cloudformation deploy --stack X", "unknown option --stack"),
        ("aws lambda put-function-recursion-config --function-name X --recursive-loop Allowed", "expected one of"),
    ],
)
def test_a_command_that_aws_would_refuse_is_found(command: str, problem: str) -> None:
    try:
        found = problems(command)
    except AssertionError as error:
        found = [str(error)]
    assert any(problem in one for one in found), found


def test_words_end_where_a_command_ends() -> None:
    command = "aws scheduler list-schedules --query 'Schedules[].Name' --output text); do"
    assert words_of(command)[1:] == ["scheduler", "list-schedules", "--query", "Schedules[].Name", "--output", "text"]
    assert words_of("aws a b --c d > file") == ["aws", "a", "b", "--c", "d"]
    assert words_of("aws a b --c d   # why") == ["aws", "a", "b", "--c", "d"]
