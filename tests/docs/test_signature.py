"""The code that docs/targets.md gives to consumers verifies what Sluice signs, and nothing else (E5)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chalicelib.aws.targets.secrets import Key, signature
from tests.support.clock import NOON

PAGE = Path(__file__).parents[2] / "docs" / "targets.md"
OLD, NEW = Key("2026-10", b"old"), Key("2026-11", b"new")
BODY = b'{"run_id": "r1"}'
AT = NOON / 1000


@pytest.fixture(scope="module")
def is_ours() -> Callable[..., bool]:
    [block] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.S | re.M)
    names: dict[str, Any] = {}
    exec(block, names)
    verify: Callable[..., bool] = names["is_ours"]
    return verify


@pytest.mark.parametrize("keys", [{"2026-11": b"new"}, {"2026-10": b"old"}, {"2026-10": b"old", "2026-11": b"new"}])
def test_e5_while_a_secret_is_rotated_either_key_verifies(is_ours: Callable[..., bool], keys: dict[str, bytes]) -> None:
    assert is_ours(signature((NEW, OLD), NOON, BODY), BODY, keys, AT + 10)


@pytest.mark.parametrize(
    ("header", "body", "now"),
    [
        (signature((NEW,), NOON, BODY), b"another", AT),
        (signature((Key("2026-11", b"guessed"),), NOON, BODY), BODY, AT),
        (signature((OLD,), NOON, BODY), BODY, AT),
        (signature((NEW,), NOON, BODY), BODY, AT + 301),
        (signature((NEW,), NOON + 301_000, BODY), BODY, AT),
        ("", BODY, AT),
        ("t=,kid=2026-11,v1=", BODY, AT),
        ("v1=00,kid=2026-11,t=1", BODY, AT),
    ],
)
def test_e5_any_other_signature_is_not_ours(is_ours: Callable[..., bool], header: str, body: bytes, now: float) -> None:
    assert not is_ours(header, body, {"2026-11": b"new"}, now)
