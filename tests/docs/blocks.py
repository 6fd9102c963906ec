"""The blocks of a page from which a reader pastes commands."""

from __future__ import annotations

import re


def commands(block: str) -> list[str]:
    """The commands of `sluice` in a block, without the comments that end their lines."""
    lines = [line.strip() for line in re.sub(r"\\\n", "", block).splitlines()]
    return [re.sub(r"\s+# .*", "", line) for line in lines if re.match(r"(\w+=\$\()?sluice ", line)]
