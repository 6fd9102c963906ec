"""Compiled modules beside the sources in a package: a Lambda cannot write there, so what is not shipped compiled
is compiled anew by every cold start.

A compiled module names the hash of its source and is not held against it (PEP 552, "unchecked"): file times, which a
zip does not keep well, play no part, and the package holds both from the same moment.
"""

import importlib.util
import py_compile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

_TIME = (1980, 1, 1, 0, 0, 0)  # the same package for the same code


def add_bytecode(package: Path) -> int:
    """Add what is compiled of each module to a zip, for this Python's version; return how many there were.

    A file that does not compile, such as a template that a dependency carries, is left as it is.
    """
    with zipfile.ZipFile(package) as archive:
        sources = {info.filename: archive.read(info) for info in archive.infolist() if info.filename.endswith(".py")}
        present = set(archive.namelist())
    added = 0
    with zipfile.ZipFile(package, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, source in sorted(sources.items()):
            place = compiled_name(name)
            compiled = None if place in present else _compiled(name, source)
            if compiled is not None:
                info = zipfile.ZipInfo(place, _TIME)
                info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                archive.writestr(info, compiled)
                added += 1
    return added


def compiled_name(name: str) -> str:
    """Where Python looks for the compiled module of a source: `a/b.py` -> `a/__pycache__/b.cpython-311.pyc`."""
    return PurePosixPath(importlib.util.cache_from_source(name)).as_posix()


def _compiled(name: str, source: bytes) -> bytes | None:
    with tempfile.TemporaryDirectory(prefix="sluice-compile-") as folder:
        path, target = Path(folder) / "source.py", Path(folder) / "target.pyc"
        path.write_bytes(source)
        try:
            # Tracebacks name the file as it lies in the Lambda.
            py_compile.compile(
                str(path), str(target), f"/var/task/{name}", doraise=True,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )  # fmt: skip
        except (py_compile.PyCompileError, UnicodeDecodeError, ValueError):
            return None
        return target.read_bytes()
