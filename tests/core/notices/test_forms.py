"""Notices as messages for Slack and Microsoft Teams: their limits, and that no reason is markup (W9)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.definitions.notify import Notify
from chalicelib.core.errors import from_validation
from chalicelib.core.notices import alerts, forms
from chalicelib.core.rows.notice import NoticeWindow, PendingNotice

HOOK = {"type": "http", "url": {"ssm": "/sluice-target/demo/hook", "host": "hooks.slack.com"}}
CONSOLE = "https://console.example/"
RUN = "demo.flights.nightly.mm94mtc0.750b144f2374384b9822"


def notice(count: int = 1, **event: str) -> dict[str, Any]:
    own = {
        "what": "failed",
        "schedule": "demo.flights.nightly",
        "id": RUN,
        "reason": "disk full",
        "at": "2026-03-02T12:00:30.000Z",
    }
    span = {"since": "2026-03-02T12:00:02.000Z", "until": "2026-03-02T12:05:02.000Z"}
    return {
        "workflow": "demo.flights.clean",
        "count": count,
        **span,
        "events": [own | event] * min(count, alerts.MAX_LISTED),
    }


def written(told: dict[str, Any], form: str | None = None, console: str | None = None) -> Any:
    window = NoticeWindow(told["workflow"], "c", HOOK, 0, 0, form=form, console=console)
    return forms.written(window, told)


def test_w9_without_a_form_a_notice_is_sent_as_it_is() -> None:
    assert written(notice()) == notice()


def test_w9_a_message_for_slack_links_to_the_console() -> None:
    message = written(notice(12), "slack", CONSOLE)
    header, *events, rest = message["blocks"]
    assert header["text"] == {"type": "plain_text", "text": "demo.flights.clean: 12 events"}
    assert len(events) == 10
    link = f"*<https://console.example/open/{RUN}|demo.flights.nightly>* failed at 2026-03-02T12:00:30.000Z\ndisk full"
    assert events[0] == {"type": "section", "text": {"type": "mrkdwn", "text": link, "verbatim": True}}
    assert rest["elements"][0]["text"].startswith("and 2 more")
    assert "<http" not in json.dumps(written(notice(), "slack", None))


@pytest.mark.parametrize("reason", ["x" * 500, "&" * 500, "&" * 2_000, "<!channel> " * 400])
def test_w9_a_message_for_slack_keeps_its_limits(reason: str) -> None:
    long = {"schedule": f"{'n' * 63}.{'a' * 63}.{'s' * 63}", "id": "r" * 300, "reason": reason}
    message = written(notice(500, **long) | {"workflow": long["schedule"]}, "slack", "https://c.example/" + "p" * 480)
    assert len(message["blocks"]) <= 50
    assert len(message["blocks"][0]["text"]["text"]) <= 150
    for block in message["blocks"][1:-1]:
        text = block["text"]["text"]
        assert len(text) <= 3_000
        assert "<!" not in text
        assert text.count("&") == text.count("&amp;") + text.count("&lt;") + text.count("&gt;")


def test_w9_a_message_for_teams_is_an_adaptive_card() -> None:
    message = written(notice(12, reason="[x](https://evil.example) **now**"), "teams", CONSOLE)
    [attached] = message["attachments"]
    assert (message["type"], attached["contentType"]) == ("message", "application/vnd.microsoft.card.adaptive")
    card = attached["content"]
    assert (card["type"], card["version"], len(card["body"])) == ("AdaptiveCard", "1.4", 12)
    assert {part["type"] for part in card["body"]} == {"RichTextBlock"}  # which shows text as it is
    assert [action["url"] for action in card["actions"]] == [f"https://console.example/open/{RUN}"] * 6
    longest = written(notice(12, reason="語" * 500), "teams", CONSOLE)
    assert len(json.dumps(longest, ensure_ascii=False).encode()) < 28_000
    assert "actions" not in written(notice(), "teams", None)["attachments"][0]["content"]


def test_w9_late_data_links_to_its_schedule() -> None:
    late = written(notice(what="data_late", id="demo.sales@2026@x"), "slack", CONSOLE)
    assert "/open/demo.flights.nightly|" in late["blocks"][1]["text"]["text"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"to": {"type": "sns", "topic_arn": "arn:aws:sns:eu-west-1:123456789012:team"}, "form": "slack"}, "to"),
        ({"to": HOOK | {"method": "PUT"}, "form": "teams"}, "to"),
        ({"to": HOOK | {"format": "cloudevents"}, "form": "teams"}, "to.format"),
        ({"to": HOOK, "console": CONSOLE}, "console"),
        ({"to": HOOK, "form": "slack", "console": "console.example"}, "console"),
        ({"to": HOOK, "form": "pager"}, "form"),
    ],
)
def test_w9_a_form_that_no_webhook_reads_is_refused(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Notify.model_validate({"on": ["failed"], **wrong})
    assert from_validation(raised.value, Notify).field == field


def test_w9_a_rule_and_its_channel_without_a_form_are_as_before() -> None:
    rule = Notify.model_validate({"on": ["failed"], "to": HOOK})
    assert set(rule.model_dump(mode="json")) == {"on", "to"}
    shown = Notify.model_validate({"on": ["failed"], "to": HOOK, "form": "slack"})
    late = PendingNotice("demo.flights.clean", "failed", RUN, "demo.flights.nightly", "disk full", 0)
    channels = alerts.channels([rule, shown, rule], late)
    assert [channel.form for channel in channels.values()] == [None, "slack"]
