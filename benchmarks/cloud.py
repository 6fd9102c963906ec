"""A local cloud for a benchmark: its state in a temporary folder, free ports, EMR with instant runs.

The cloud of the checkout is not used. The code is a copy of the working tree, so an edit during a measurement has no
effect.
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
    """The running cloud: its addresses and its files."""

    endpoints: Endpoints
    layout: Layout

    def client(self, service: str) -> Any:
        return self.endpoints.client(service)


@contextmanager
def own_cloud(counted: bool = False, **emr: str) -> Iterator[Running]:
    """Start a cloud and remove it at the end. ``counted``: it counts its calls (`infra/local/counts.py`). `emr` are
    settings of the EMR emulator, such as `start_tps="0"`."""
    with tempfile.TemporaryDirectory(prefix="sluice-bench-", ignore_cleanup_errors=True) as folder:
        layout = Layout(_copy(Path(folder)))
        if counted:
            layout.home.mkdir(parents=True)
            layout.counts.touch()
        # The servers get no settings, endpoints or credentials of this shell.
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
