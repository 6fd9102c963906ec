"""Write the present answers into the pages: ``python -m tests.wrong_inputs.write``. Read the diff before a commit."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.wrong_inputs.pages import FOLDER, Example, of_page
from tests.wrong_inputs.played import PLAYED, played
from tests.wrong_inputs.served import answer, standing


def main() -> None:
    with standing() as served:
        for path in sorted(FOLDER.glob("*.md")):
            write(path, partial(answer, served))
    for path in sorted(PLAYED.glob("*.md")):
        write(path, answer_of_play)


def write(path: Path, ask: Callable[[Example, Path], str]) -> None:
    head, *sections = re.split(r"(?=^## )", path.read_text(), flags=re.M)
    written = [head]
    for section in sections:
        (example,) = of_page(path.stem, section)
        with TemporaryDirectory() as folder:
            found = ask(example, Path(folder))
        before = f"$ {example.command}\n{example.console}```"
        written.append(section.replace(before, f"$ {example.command}\n{found}```"))
    path.write_text("".join(written))


def answer_of_play(example: Example, folder: Path) -> str:
    with played(example) as play:
        return play.printed(folder)


if __name__ == "__main__":
    main()
