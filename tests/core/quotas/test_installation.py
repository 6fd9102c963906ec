"""The template and the settings give the quotas of the installation the bounds of a namespace's own (O9)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from chalicelib.core.quotas.document import Quotas
from chalicelib.settings import Settings

REQUIRED = ("CATALOG_TABLE", "JOBS_TABLE", "RUNS_TABLE", "HINTS_QUEUE_URL", "LAKE_BUCKET", "CONTROL_BUCKET")
PARAMETERS = Path(__file__).parents[3] / "infra" / "resources" / "parameters.yaml"


def bounds(quota: str) -> tuple[float, float]:
    """The least and the largest value of a parameter of the template."""
    name = "Quota" + "".join(word.capitalize() for word in quota.split("_"))
    lines = PARAMETERS.read_text().partition(f"  {name}:\n")[2]
    parameter: Mapping[str, Any] = yaml.safe_load(lines.partition("\n  Quota")[0].partition("\n  Worker")[0])
    return parameter["MinValue"], parameter["MaxValue"]


def settings(quota: str, value: object) -> Settings:
    required = {f"SLUICE_{name}": "x" for name in REQUIRED}
    return Settings.from_environment(required | {f"SLUICE_QUOTA_{quota.upper()}": str(value)})


@pytest.mark.parametrize("quota", Quotas.model_fields)
def test_o9_the_bounds_of_the_template_are_accepted(quota: str) -> None:
    for value in bounds(quota):
        found = getattr(settings(quota, value), f"quota_{quota}")
        assert getattr(Quotas.model_validate({quota: found}), quota) == value


@pytest.mark.parametrize("quota", Quotas.model_fields)
def test_o9_what_no_document_may_have_is_refused_at_once(quota: str) -> None:
    """A value beyond the bounds would be answered with an error of the server at each request."""
    least, most = bounds(quota)
    for value in (least - 1, most + 1, "many", "nan", ""):
        with pytest.raises(RuntimeError, match=f"expected {least:,} to {most:,} in SLUICE_QUOTA_{quota.upper()}, got"):
            settings(quota, value)
