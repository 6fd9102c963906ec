"""The template as `make package` writes it, built once per session from the checkout's own app.py."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra import package, yaml_tags


@pytest.fixture(scope="session")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with template.yaml and deployment.zip, without third-party code."""
    out: Path = tmp_path_factory.mktemp("package")
    package.package(out, with_dependencies=False)
    return out


@pytest.fixture(scope="session")
def template(packaged: Path) -> dict[str, Any]:
    """The merged template."""
    return yaml_tags.load((packaged / "template.yaml").read_text())


@pytest.fixture(scope="session")
def resources(template: dict[str, Any]) -> dict[str, Any]:
    """The template's resources by logical id."""
    return dict(template["Resources"])


def of_type(resources: dict[str, Any], kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Logical ids and properties of all resources of one type."""
    yield from ((name, r["Properties"]) for name, r in resources.items() if r["Type"] == kind)
