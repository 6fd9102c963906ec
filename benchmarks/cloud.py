"""A local cloud of the benchmark's own: its state in a temporary folder, its ports free ones, EMR with instant runs.

The cloud of the checkout, if one is up, is not touched. The code is a copy of the working tree, so an edit in the
middle of a measurement changes nothing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from infra.local import cloud, ports
from infra.local.endpoints import Endpoints
from infra.local.layout import ROOT, SOURCES, Layout

_NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.pyc")


@dataclass(frozen=True)
class Running:
    """The cloud that is up: where it is reached, and where its files are."""

    endpoints: Endpoints
    layout: Layout

    def client(self, service: str) -> Any:
        return self.endpoints.client(service)


@contextmanager
def own_cloud(**emr: str) -> Iterator[Running]:
    """Start one and remove it at the end. `emr` are settings of the EMR emulator, `start_tps="0"` for instance."""
    with tempfile.TemporaryDirectory(prefix="sluice-bench-", ignore_cleanup_errors=True) as folder:
        layout = Layout(_copy(Path(folder)))
        # Nothing of this shell's own settings, endpoints or credentials reaches the servers.
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLUICE_", "AWS_"))}
        chosen = {f"SLUICE_EMR_{name.upper()}": value for name, value in emr.items()}
        numbers = {"SLUICE_PORT": str(ports.any_free()), "SLUICE_EMR_PORT": str(ports.any_free())}
        instant = {"SLUICE_EMR_DRIVER": "instant", "SLUICE_EMR_CLASS_ARCHIVE": "off"}
        with patch.dict(os.environ, clean | instant | chosen | numbers, clear=True):
            try:
                yield Running(cloud.up(layout).endpoints, layout)
            finally:
                cloud.down(layout)


def _copy(root: Path) -> Path:
    for name in SOURCES:
        source, target = ROOT / name, root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=_NOT_COPIED)
        else:
            shutil.copyfile(source, target)
    return root
