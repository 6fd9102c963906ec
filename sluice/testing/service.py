"""Finds the service's code and makes it importable.

A checkout has the code at its root. An installed distribution has a copy below this package. So it installs no module
with the name ``chalicelib``, which every project of Chalice uses.
"""

from __future__ import annotations

import sys
from importlib import util
from pathlib import Path

PACKAGE = "chalicelib"
PLACES = (Path(__file__).with_name("_service"), Path(__file__).parents[2])


def find(places: tuple[Path, ...] = PLACES) -> Path:
    """The first of these folders with the code of the service. Raises ImportError, with what to do, if none has it."""
    for place in places:
        if (place / PACKAGE / "flow").is_dir():
            return place
    raise ImportError(f"expected the service's code in {places[0]}, found none; install sluice[testing] again")


def load() -> None:
    """Put the folder of the service at the front of ``sys.path``. Raises ImportError if its requirements are not
    installed, or if another ``chalicelib`` is imported already."""
    place = find()
    known = sys.modules.get(PACKAGE)
    if known is not None and not _is_ours(known.__path__, place):
        hint = "test apps of Sluice and your Chalice project in two sessions of pytest"
        raise ImportError(f"expected to import {PACKAGE} of Sluice, got {list(known.__path__)}; {hint}")
    missing = [name for name in ("pydantic", "aws_lambda_powertools", "boto3") if util.find_spec(name) is None]
    if missing:
        raise ImportError(f"sluice.testing needs {', '.join(missing)}: pip install 'sluice[testing]'")
    if known is None and str(place) not in sys.path:
        sys.path.insert(0, str(place))


def _is_ours(found: object, place: Path) -> bool:
    paths = [Path(path) for path in found] if isinstance(found, list) else []
    return bool(paths) and all((path / "flow").is_dir() and (path / "ports.py").is_file() for path in paths)
