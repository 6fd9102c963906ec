"""An example that gets no answer, or a refusal, prints one sentence and ends with the exit code 1."""

from __future__ import annotations

import pytest

from examples.stage import Failed, exit_code_of
from sluice.errors import ApiRefused, Failure, NotReachable


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (NotReachable("no answer within 29 s", hint="see `make up`"), "demo: no answer within 29 s; see `make up`"),
        (ApiRefused(409, "conflict", "app flights changed", hint="read it"), "demo: app flights changed; read it"),
    ],
)
def test_a_failure_ends_an_example_with_one_sentence(failure: Failure, sentence: str) -> None:
    def main() -> int:
        raise failure

    with pytest.raises(Failed) as ended:
        exit_code_of("demo", main)
    assert ended.value.code == sentence
    assert ended.value.__suppress_context__, "no traceback of the cause"


def test_without_a_hint_the_error_says_how_to_run_again() -> None:
    def main() -> int:
        raise NotReachable("connection refused")

    with pytest.raises(Failed) as ended:
        exit_code_of("demo", main)
    assert "connection refused" in str(ended.value.code) and "`make demo`" in str(ended.value.code)


def test_a_programming_error_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        exit_code_of("demo", lambda: 1 // 0)


def test_an_example_that_succeeds_returns_its_exit_code() -> None:
    assert exit_code_of("demo", lambda: 0) == 0
