"""The scenarios of arriving data, repeated on the local cloud: atomic tables, real S3 notifications."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from infra.local.endpoints import Endpoints
from tests.acceptance import test_acceptance as acceptance
from tests.acceptance import test_guides as guides
from tests.acceptance import test_stories as stories
from tests.support.cloud_world import CloudWorld

pytestmark = pytest.mark.cloud

SCENARIOS: tuple[Callable[..., None], ...] = (
    acceptance.test_acceptance_1,
    acceptance.test_acceptance_4,
    acceptance.test_acceptance_5,
    acceptance.test_acceptance_6,
    acceptance.test_acceptance_7,
    acceptance.test_acceptance_8,
    guides.test_guide_3,
    stories.test_story_3,
    stories.test_story_9,
)


@pytest.fixture
def scene(cloud: Endpoints) -> Iterator[CloudWorld]:
    world = CloudWorld(cloud)
    yield world
    world.close()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__.removeprefix("test_"))
def test_scenarios_have_the_same_result_with_real_notifications(
    scenario: Callable[..., None], scene: CloudWorld
) -> None:
    scenario(scene)
