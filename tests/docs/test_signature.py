"""The code that docs/targets.md gives to consumers verifies what Sluice signs, and nothing else (E5)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chalicelib.aws.targets.secrets import Key, Subject, signature
from tests.support.clock import NOON

PAGE = Path(__file__).parents[2] / "docs" / "targets.md"
OLD, NEW = Key("2026-10", b"old"), Key("2026-11", b"new")
BODY = b'{"run_id": "r1"}'
AT = NOON / 1000
ABOUT = Subject("demo.flights.clean", "demo.flights.clean.1.e1", "POST", "https://hooks.example.com/orders?a=b")
Verify = Callable[[str, Subject, bytes, dict[str, bytes], float], bool]


@pytest.fixture(scope="module")
def is_ours() -> Verify:
    """The verification of the page, for a call that arrives with this header and about this subject."""
    [block] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.S | re.M)
    names: dict[str, Any] = {}
    exec(block, names)

    def verify(header: str, about: Subject, body: bytes, keys: dict[str, bytes], now: float) -> bool:
        own = {"Sluice-Schedule": about.schedule, "Sluice-Event-Id": about.event_id}
        headers = own | {"Sluice-Signature": header}
        found: bool = names["is_ours"](headers, about.method, about.url, body, keys, now)
        return found

    return verify


@pytest.mark.parametrize("keys", [{"2026-11": b"new"}, {"2026-10": b"old"}, {"2026-10": b"old", "2026-11": b"new"}])
def test_e5_while_a_secret_is_rotated_either_key_verifies(is_ours: Verify, keys: dict[str, bytes]) -> None:
    assert is_ours(signature((NEW, OLD), NOON, ABOUT, BODY), ABOUT, BODY, keys, AT + 10)


@pytest.mark.parametrize(
    ("header", "body", "now"),
    [
        (signature((NEW,), NOON, ABOUT, BODY), b"another", AT),
        (signature((Key("2026-11", b"guessed"),), NOON, ABOUT, BODY), BODY, AT),
        (signature((OLD,), NOON, ABOUT, BODY), BODY, AT),
        (signature((NEW,), NOON, ABOUT, BODY), BODY, AT + 301),
        (signature((NEW,), NOON + 301_000, ABOUT, BODY), BODY, AT),
        (signature((NEW,), NOON, ABOUT, BODY).replace("t=1772452800", "t=1772452801"), BODY, AT),
        (signature((NEW,), NOON, ABOUT, BODY).replace("v2=", "v1="), BODY, AT),
        ("", BODY, AT),
        ("t=,kid=2026-11,v2=", BODY, AT),
        ("v2=00,kid=2026-11,t=1", BODY, AT),
    ],
)
def test_e5_any_other_signature_is_not_ours(is_ours: Verify, header: str, body: bytes, now: float) -> None:
    assert not is_ours(header, ABOUT, body, {"2026-11": b"new"}, now)


@pytest.mark.parametrize(
    "changed",
    [
        {"schedule": "other.flights.clean"},
        {"schedule": "demo.flights.other"},
        {"event_id": "demo.flights.clean.1.e2"},
        {"method": "PUT"},
        {"url": "https://hooks.example.com/refunds"},
    ],
)
def test_e5_a_signature_covers_what_the_call_is_about(is_ours: Verify, changed: dict[str, str]) -> None:
    header = signature((NEW,), NOON, ABOUT, BODY)
    assert is_ours(header, ABOUT, BODY, {"2026-11": b"new"}, AT)
    assert not is_ours(header, replace(ABOUT, **changed), BODY, {"2026-11": b"new"}, AT)
