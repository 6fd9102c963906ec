"""Build the distribution: the client, and a copy of the service that `sluice.testing` runs in the user's tests.

The copy lies inside the package. At the top level it would hide the ``chalicelib`` of the user's own Chalice project.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent


class BuildWithService(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return  # `sluice.testing` finds the service in the checkout
        copy = Path(self.build_lib, "sluice", "testing", "_service", "chalicelib")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(ROOT / "chalicelib", copy, ignore=shutil.ignore_patterns("__pycache__"))


setup(cmdclass={"build_py": BuildWithService})
