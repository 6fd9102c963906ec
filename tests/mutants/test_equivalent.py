"""The list of equivalent mutants follows the code."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.__main__ import ROOT, explained, path_of


@pytest.mark.parametrize("module", sorted(explained()))
def test_each_equivalent_mutant_quotes_the_present_code(module: str) -> None:
    source = (ROOT / path_of(module)).read_text()
    functions = {node.name: node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}
    for mutant in explained()[module]:
        function = functions[mutant["function"].rpartition(".")[2]]
        lines = (line.strip() for line in source.splitlines()[function.lineno - 1 : function.end_lineno])
        assert mutant["was"] in "\n".join(lines), mutant
