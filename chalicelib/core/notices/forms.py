"""Notices as messages for webhooks of Slack and of Microsoft Teams.

A reason comes from outside, so it is never read as markup: no link, no mention of a channel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from chalicelib.core.text import count_of

Json = dict[str, Any]
MAX_HEADER = 150  # characters of a header in Slack: https://docs.slack.dev/reference/block-kit/blocks/header-block
MAX_TEXT = 3_000  # of a text in Slack: https://docs.slack.dev/reference/block-kit/blocks/section-block

WORDS = {
    "failed": "failed",
    "aborted": "was aborted",
    "missed_start": "did not start in time",
    "missed_end": "did not end in time",
    "data_late": "waits for late data",
    "data_fresh": "has fresh data again",
}


def written(notice: Mapping[str, Any], form: str | None, console: str | None) -> Mapping[str, Any]:
    """The body of the message of a notice: the notice itself without a ``form``."""
    if form is None:
        return notice
    return slack(notice, console) if form == "slack" else teams(notice, console)


def slack(notice: Mapping[str, Any], console: str | None) -> Json:
    """The message for an incoming webhook: one block for each event, below the header.

    https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks"""
    head = _head(notice)
    blocks: list[Json] = [{"type": "header", "text": {"type": "plain_text", "text": _cut(head, MAX_HEADER)}}]
    for event in notice["events"]:
        url, name = _url(event, console), _escaped(_named(event))
        title = f"<{url}|{name}>" if url is not None else name
        text = f"*{title}* {_words(event)} at {event['at']}\n"
        text += _cut(_escaped(event["reason"]), MAX_TEXT - len(text))
        # Verbatim: otherwise Slack makes links of addresses and names of channels in a reason.
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}})
    if rest := notice["count"] - len(notice["events"]):
        more = {"type": "plain_text", "text": f"and {rest} more, from {notice['since']} to {notice['until']}"}
        blocks.append({"type": "context", "elements": [more]})
    return {"text": _escaped(head), "blocks": blocks}


def teams(notice: Mapping[str, Any], console: str | None) -> Json:
    """The message for a webhook of the app Workflows: an Adaptive Card, and a button for each event.

    https://learn.microsoft.com/en-us/connectors/teams/#microsoft-teams-webhook"""
    body: list[Json] = [_paragraph([_run(_head(notice), weight="Bolder", size="Medium")])]
    for event in notice["events"]:
        title = _run(f"{_named(event)} ", weight="Bolder")
        body.append(_paragraph([title, _run(f"{_words(event)} at {event['at']}. "), _run(event["reason"])]))
    if rest := notice["count"] - len(notice["events"]):
        body.append(_paragraph([_run(f"and {rest} more, from {notice['since']} to {notice['until']}")]))
    links = [(_named(event), _url(event, console)) for event in notice["events"]]
    # A card shows at most six buttons.
    actions = [{"type": "Action.OpenUrl", "title": name, "url": url} for name, url in links if url is not None][:6]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        **({"actions": actions} if actions else {}),
    }
    attached = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attached]}


def _head(notice: Mapping[str, Any]) -> str:
    return f"{notice['workflow']}: {count_of(notice['count'], 'event')}"


def _named(event: Mapping[str, str]) -> str:
    return event["schedule"]


def _words(event: Mapping[str, str]) -> str:
    return WORDS.get(event["what"], event["what"])


def _url(event: Mapping[str, str], console: str | None) -> str | None:
    """The address of the run or job in the console; of the schedule if its data is late."""
    if console is None:
        return None
    thing = event["schedule"] if event["what"].startswith("data_") else event["id"]
    return f"{console.rstrip('/')}/open/{quote(thing, safe='')}"


def _escaped(text: str) -> str:
    """https://docs.slack.dev/messaging/formatting-message-text#escaping"""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cut(text: str, most: int) -> str:
    """A text of at most ``most`` characters, which does not end within an escape."""
    if len(text) <= most:
        return text
    kept = text[: most - 3]
    start = kept.rfind("&")
    return (kept[:start] if start > kept.rfind(";") else kept) + "..."


def _paragraph(inlines: list[Json]) -> Json:
    return {"type": "RichTextBlock", "inlines": inlines}


def _run(text: str, **style: str) -> Json:
    """A text in which nothing is markup."""
    return {"type": "TextRun", "text": text, **style}
