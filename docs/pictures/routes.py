"""The table of routes in docs/interfaces.md, made from app.py.

python -m docs.pictures.routes        writes it between its markers

`tests/test_docs.py` fails when the page and the code say different things.
"""

from __future__ import annotations

import re
from pathlib import Path

from app import app

PAGE = Path(__file__).parents[1] / "interfaces.md"


def table() -> str:
    rows = [f"| `{path}` | {' '.join(sorted(methods))} |" for path, methods in sorted(app.routes.items())]
    return "\n".join(["| path | methods |", "|---|---|", *rows])


def with_routes(text: str) -> str:
    """The page with the table as the code has it."""
    block = f"<!-- routes -->\n{table()}\n<!-- end -->"
    text, found = re.subn(r"<!-- routes -->.*?<!-- end -->", lambda _: block, text, flags=re.S)
    if found != 1:
        raise ValueError(f"expected one place for the routes in {PAGE.name}, found {found}")
    return text


if __name__ == "__main__":
    PAGE.write_text(with_routes(PAGE.read_text()))
