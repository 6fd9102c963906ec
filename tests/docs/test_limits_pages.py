"""The examples of docs/pools.md, docs/throttling.md and docs/notices.md are accepted, and behave as their pages say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from chalicelib.core.definitions.notify import Notify
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import MINUTE
from chalicelib.core.limits.policies import Policy
from chalicelib.core.limits.pools import Pool
from chalicelib.core.targets.resources import Resources
from sluice import documents
from tests.support.answers import explain
from tests.support.schedules import partitions
from tests.support.world import EMR, World, day, flights

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page in a language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(), flags=re.S | re.M)


def read(tmp_path: Path, page: str) -> list[Any]:
    """The YAML of a page, as the command line reads it."""
    found = []
    for number, text in enumerate(blocks(page, "yaml")):
        file = tmp_path / f"{number}.yaml"
        file.write_text(text)
        found.append(documents.load(str(file)))
    return found


def test_the_pool_example_waits_as_its_page_says(tmp_path: Path) -> None:
    example, *_ = read(tmp_path, "pools.md")
    world = World(start_burst=100)
    app = flights({"daily": partitions(1, "clean", by=["day"])}, **example["workflows"])
    world.deploy({**app, "pools": example["pools"]})
    for number in range(1, 5):
        world.upload(day(number))
    world.settle()
    [waiting] = world.jobs("daily")
    assert f"\n{explain.why_job(world.ports, waiting)['why']}\n" in (DOCS / "pools.md").read_text()


def test_the_workflows_of_the_pools_page_are_accepted(tmp_path: Path) -> None:
    _, resources, aging, deadline, retries = read(tmp_path, "pools.md")
    assert Pool.model_validate(aging["pools"]["cluster"]).aging_span == 30 * MINUTE
    assert Policy.model_validate(aging["policies"]["partner"]).aging_span == 120 * MINUTE
    assert Resources.model_validate(resources["resources"]).vcpus == 16
    assert Workflow.model_validate(deadline["report"]).deadline is not None
    tried = Workflow.model_validate(retries["clean"]).retries
    assert [tried.delay_after(attempt, "r") for attempt in (1, 2)] == [60_000, 120_000]


def test_the_policy_example_keeps_the_spacing_of_its_page(tmp_path: Path) -> None:
    example, margin = read(tmp_path, "throttling.md")
    assert Policy.model_validate(margin["policies"]["partner"]).cycle == 11_200
    app = flights(example["schedules"], backup={"target": EMR})
    World().deploy({**app, "policies": example["policies"]})
    spacing = Policy.model_validate(example["policies"]["consumer"]).spacing
    assert f"{spacing / 1000:g} s" in (DOCS / "throttling.md").read_text()


def test_the_workflow_of_the_notices_page_is_accepted() -> None:
    workflow, notice = (json.loads(text) for text in blocks("notices.md", "json")[:2])
    rules = Workflow.model_validate(workflow).notify
    assert {what for rule in rules for what in rule.on} == {"failed", "aborted", "missed_start", "missed_end"}
    assert set(notice) == {"workflow", "count", "since", "until", "events"}
    forms = [
        Notify.model_validate(each).form for text in blocks("notices.md", "json") if "on" in (each := json.loads(text))
    ]
    assert forms == [None, "slack", "pagerduty", "mail"]
