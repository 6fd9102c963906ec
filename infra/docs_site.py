"""`make docs`: the documents of the repository as a site with a search, in build/site.

    python -m infra.docs_site

The pages keep their places, so that their links hold: build/docs gets every page and every file that one links to.
mkdocs fails on a link that leads nowhere, and on a page that the navigation of mkdocs.yml does not have.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
STAGED = ROOT / "build" / "docs"
PAGES = ("*.md", "docs/**/*.md", "examples/**/*.md", "jobs/*.md", "job_library/*.md")
LINK = re.compile(r'\]\(([^)\s#]+)[^)]*\)|(?:src|href)="([^"#]+)')
ITEM = re.compile(r"(?P<indent> *)(?P<marker>[-*] |\d+\. )")


def pages() -> list[Path]:
    """The pages of the repository, by their places in it."""
    return sorted({page.relative_to(ROOT) for pattern in PAGES for page in ROOT.glob(pattern)})


def stage(folder: Path = STAGED) -> None:
    """Fill the folder with the pages, and with the files of the repository that they link to."""
    shutil.rmtree(folder, ignore_errors=True)
    for page in pages():
        text = (ROOT / page).read_text()
        _write(folder / page, with_blank_lines(text))
        for link in linked(text):
            place = Path(os.path.normpath(page.parent / link))
            source = ROOT / place
            if source.is_file() and source.suffix != ".md" and not place.is_absolute() and place.parts[0] != "..":
                (folder / place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, folder / place)


def linked(text: str) -> Iterator[str]:
    """The files to which a page links; addresses on the web are left out."""
    return (link for found in LINK.findall(text) if (link := found[0] or found[1]) and "://" not in link)


def with_blank_lines(text: str) -> str:
    """The same page for Python-Markdown, which wants more space than GitHub. It wants a blank line before a list or a
    table that follows a sentence. It wants four spaces before what belongs to an item of a list. Blocks of code
    stay."""
    lines: list[str] = []
    fence, width = "", 0  # of the block of code and of the marker of the item in which a line stands
    for line in text.splitlines():
        bare = line.strip()
        item = None if fence else ITEM.match(line)
        if not fence and bare and not item and not line.startswith(" ") and _ends_a_list(line, lines):
            width = 0
        if item and not item["indent"]:
            width = len(item["marker"])
        opens = not fence and (item is not None or bare.startswith("|"))
        if opens and lines and lines[-1].strip() and _kind(lines[-1]) != _kind(line) and not _in_item(lines, item):
            lines.append("")
        if bare.startswith("```"):
            if not fence and width and line.startswith(" ") and lines and lines[-1].strip():
                lines.append("")
            fence = "" if fence else "```"
        shifted = width and line.startswith(" " * width)
        lines.append(f"{' ' * (4 - width)}{line}" if shifted else line)
    return "\n".join(lines) + "\n"


def _ends_a_list(line: str, before: list[str]) -> bool:
    """Whether a line without indentation begins something new; otherwise it goes on with the sentence of an item."""
    return not (before and before[-1].strip()) or line.startswith(("```", "#", "|", "<"))


def _kind(line: str) -> str:
    return "item" if ITEM.match(line) else "row" if line.strip().startswith("|") else "text"


def _in_item(lines: list[str], item: re.Match[str] | None) -> bool:
    """Whether an item follows the sentence of the item before it."""
    before = next((line for line in reversed(lines) if not line.startswith(" ")), "")
    return item is not None and bool(ITEM.match(before))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main() -> int:
    """Build the site. Returns the exit code of mkdocs."""
    stage()
    # Not with --quiet, which hides the warnings from strict mode, too.
    command = [sys.executable, "-m", "mkdocs", "build", "--clean"]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    for line in done.stderr.splitlines():
        if line.strip() and not line.startswith("INFO"):
            print(line, file=sys.stderr)
    if done.returncode == 0:
        print(f"{ROOT / 'build' / 'site' / 'index.html'}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
