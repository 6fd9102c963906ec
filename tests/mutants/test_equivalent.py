"""The lists of modules, of their tests and of equivalent mutants follow the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.mutants.__main__ import MODULES, ROOT, explained, own_tests, path_of


@pytest.mark.parametrize("module", MODULES)
def test_each_module_that_is_mutated_exists_and_has_tests(module: str) -> None:
    assert (ROOT / path_of(module)).is_file()
    assert [name for name, found in own_tests(module).items() if not found] == []


@pytest.mark.parametrize("module", sorted(explained()))
def test_each_equivalent_mutant_quotes_the_present_code(module: str) -> None:
    source = (ROOT / path_of(module)).read_text()
    functions = dict(_functions(ast.parse(source)))
    for mutant in explained()[module]:
        function = functions[mutant["function"]]
        lines = (line.strip() for line in source.splitlines()[function.lineno - 1 : function.end_lineno])
        assert mutant["was"] in "\n".join(lines), mutant


def _functions(scope: ast.Module | ast.ClassDef, within: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions of a module, and the methods of its classes with the names of these."""
    for node in scope.body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield f"{within}{node.name}", node
