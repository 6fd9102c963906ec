"""Plays the example of docs/dags.md. The page must show the result, line by line (W4)."""

from __future__ import annotations

import json
import re
from pathlib import Path

from jsonschema import Draft202012Validator

from sluice import yaml12
from tests.support import dags
from tests.support.world import EMR, World, day, flights

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^<!-- (?P<kind>example|story): daily -->\n```(?:yaml)?\n(?P<text>.*?)^```$", flags=re.S | re.M)
CONTEXT = Draft202012Validator(json.loads((DOCS / "run-context.schema.json").read_text()))


def reported(world: World, what: str) -> str:
    """A line of the page: what happened, and the states of the nodes then."""
    [view] = dags.views(world)
    nodes = ", ".join(f"{node} {each['state']}" for node, each in view["nodes"].items())
    return f"{what:32}{view['state']}: {nodes}"


def test_w4_the_dag_example_behaves_as_its_page_says() -> None:
    blocks = {each["kind"]: each["text"] for each in BLOCK.finditer((DOCS / "dags.md").read_text())}
    world = World(wake_shards=1, history_shards=1)
    documents = {name: {**document, "enabled": True} for name, document in yaml12.load(blocks["example"]).items()}
    world.deploy({**flights({}, report={"target": EMR}), "dags": documents})

    world.upload(day(1))
    world.settle()
    lines = [reported(world, "day 1 of flights is ready")]
    for node, outcome in (("clean", "SUCCESS"), ("check", "SUCCESS"), ("join", "FAILED")):
        dags.ends(world, node, outcome)
        lines.append(reported(world, f"{node} ends: {outcome}"))
    dags.rerun(world, "from", "join")
    world.settle()
    lines.append(reported(world, "run again from join"))
    for node in ("join", "report"):
        dags.ends(world, node)
        lines.append(reported(world, f"{node} ends: SUCCESS"))

    assert blocks["story"].splitlines() == lines, "\n".join(["the page should say:", *lines])
    faults = [fault for run in world.targets.emr.runs.values() for fault in CONTEXT.iter_errors(run.request)]
    assert faults == []
