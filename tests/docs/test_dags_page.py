"""Plays the examples of docs/dags.md. The page must show the result, line by line (W4, W17, W18)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from sluice import yaml12
from tests.support import dags
from tests.support.world import EMR, World, day, flights

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(
    r"^<!-- (?P<kind>example|story): (?P<name>\w+) -->\n```(?:yaml)?\n(?P<text>.*?)^```$", flags=re.S | re.M
)
CONTEXT = Draft202012Validator(json.loads((DOCS / "run-context.schema.json").read_text()))


STEP = re.compile(
    r"(?P<node>\w+) ends: (?:(?P<outcome>[A-Z]+)|(?P<result>\{.*\}))"
    r"|run again from (?P<again>\w+)|day 1 of flights is ready"
)


def example(name: str) -> tuple[str, list[str]]:
    """The document of an example, and the lines of its story."""
    blocks = {
        each["kind"]: each["text"] for each in BLOCK.finditer((DOCS / "dags.md").read_text()) if each["name"] == name
    }
    return blocks["example"], blocks["story"].splitlines()


def reported(world: World, name: str, what: str) -> str:
    """A line of the page: what happened, and the states of the nodes then."""
    [view] = dags.views(world, name)
    nodes = ", ".join(f"{node} {each['state']}" for node, each in view["nodes"].items())
    return f"{what:32}{view['state']}: {nodes}"


def play(world: World, name: str, what: str) -> None:
    step = STEP.fullmatch(what)
    assert step is not None, what
    if step["node"]:
        result = json.loads(step["result"]) if step["result"] else None
        dags.ends(world, step["node"], step["outcome"] or "SUCCESS", result=result)
    elif step["again"]:
        dags.rerun(world, "from", step["again"], name=name)
    else:
        world.upload(day(1))
    world.settle()


@pytest.mark.parametrize("name", ["daily", "nightly", "branching"])
def test_w4_the_dag_examples_behave_as_their_page_says(name: str) -> None:
    given, story = example(name)
    world = World(wake_shards=1, history_shards=1)
    documents = {short: {**document, "enabled": True} for short, document in yaml12.load(given).items()}
    used = {node["workflow"] for document in documents.values() for node in document["nodes"].values()}
    world.deploy({**flights({}, **{each: {"target": EMR} for each in used}), "dags": documents})

    lines = []
    for what in (line[:32].rstrip() for line in story):
        play(world, name, what)
        lines.append(reported(world, name, what))
    assert story == lines, "\n".join(["the page should say:", *lines])
    faults = [fault for run in world.targets.emr.runs.values() for fault in CONTEXT.iter_errors(run.request)]
    assert faults == []
