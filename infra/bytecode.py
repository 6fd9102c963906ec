"""Compiled modules in a package, next to their sources. A Lambda cannot write there, so every cold start would compile
a module that the package does not contain in compiled form.

A compiled module contains the hash of its source, which Python does not check (PEP 552, "unchecked"). File times, which
zip stores imprecisely, have no effect, and the package holds source and compiled module of the same moment.
"""

import importlib.util
import py_compile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

_TIME = (1980, 1, 1, 0, 0, 0)  # constant, so that the same code gives the same package


def add_bytecode(package: Path) -> int:
    """Add the compiled form of each module to a zip, for this version of Python; return the number of modules.

    A file that does not compile, such as a template in a dependency, is left as it is.
    """
    with zipfile.ZipFile(package) as archive:
        sources = {info.filename: archive.read(info) for info in archive.infolist() if info.filename.endswith(".py")}
        present = set(archive.namelist())
    added = 0
    with zipfile.ZipFile(package, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, source in sorted(sources.items()):
            path = compiled_name(name)
            compiled = None if path in present else _compiled(name, source)
            if compiled is not None:
                info = zipfile.ZipInfo(path, _TIME)
                info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                archive.writestr(info, compiled)
                added += 1
    return added


def compiled_name(name: str) -> str:
    """The path of the compiled module of a source: `a/b.py` -> `a/__pycache__/b.cpython-311.pyc`."""
    return PurePosixPath(importlib.util.cache_from_source(name)).as_posix()


def _compiled(name: str, source: bytes) -> bytes | None:
    with tempfile.TemporaryDirectory(prefix="sluice-compile-") as folder:
        path, target = Path(folder) / "source.py", Path(folder) / "target.pyc"
        path.write_bytes(source)
        try:
            # Tracebacks name the path of the file in the Lambda.
            py_compile.compile(
                str(path), str(target), f"/var/task/{name}", doraise=True,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )  # fmt: skip
        except (py_compile.PyCompileError, UnicodeDecodeError, ValueError):
            return None
        return target.read_bytes()
