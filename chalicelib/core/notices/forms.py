"""Notices as messages for webhooks of Slack and of Microsoft Teams, as events of PagerDuty, and as mails.

A reason comes from outside, so it is never read as markup: no link, no mention of a channel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from chalicelib.core.rows.notice import NoticeWindow
from chalicelib.core.text import count_of

Json = dict[str, Any]
MAX_HEADER = 150  # characters of a header in Slack: https://docs.slack.dev/reference/block-kit/blocks/header-block
MAX_TEXT = 3_000  # of a text in Slack: https://docs.slack.dev/reference/block-kit/blocks/section-block
MAX_SUMMARY = 1_024  # https://developer.pagerduty.com/docs/send-alert-event
MAX_SUBJECT = 100  # https://docs.aws.amazon.com/sns/latest/api/API_Publish.html

WORDS = {
    "failed": "failed",
    "aborted": "was aborted",
    "missed_start": "did not start in time",
    "missed_end": "did not end in time",
    "data_late": "waits for late data",
    "data_fresh": "has fresh data again",
}

# Of PagerDuty: what has failed, and what is late.
SEVERITIES = {"missed_start": "warning", "missed_end": "warning", "data_late": "warning"}


def written(window: NoticeWindow, notice: Mapping[str, Any]) -> Json | str:
    """The body of the message of a notice in the form of its window, which the notice leaves behind."""
    match window.form:
        case "slack":
            return slack(notice, window.console)
        case "teams":
            return teams(notice, window.console)
        case "pagerduty":
            return pagerduty(notice, window.console, window.incident or "", resolves=window.opened_at is None)
        case "mail":
            return mail(notice, window.console)
        case _:
            return dict(notice)


def addressed(window: NoticeWindow, notice: Mapping[str, Any]) -> Json:
    """The fields of the target of a notice that its form sets: the subject of a mail, unless the rule has one. Names
    have no line breaks, so neither has a subject."""
    if window.form != "mail" or window.target.get("subject") is not None:
        return {}
    return {"subject": _shortened(_summary(notice), MAX_SUBJECT)}


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


def pagerduty(notice: Mapping[str, Any], console: str | None, incident: str, resolves: bool) -> Json:
    """An event of the Events API v2 without its ``routing_key``, which Sluice adds right before the call. Each event
    with the same ``incident`` belongs to one incident, and ``resolves`` ends it.

    https://developer.pagerduty.com/docs/send-alert-event"""
    if resolves:
        return {"event_action": "resolve", "dedup_key": incident}
    first = notice["events"][0]
    told = f"{_summary(notice)}: {first['reason']}" if first["reason"] else _summary(notice)
    links = [(_named(event), _url(event, console)) for event in notice["events"]]
    return {
        "event_action": "trigger",
        "dedup_key": incident,
        "payload": {
            "summary": _shortened(told, MAX_SUMMARY),
            "source": notice["workflow"],
            "severity": SEVERITIES.get(first["what"], "error"),
            "timestamp": first["at"],
            "component": first["schedule"],
            "group": ".".join(notice["workflow"].split(".")[:2]),
            "class": first["what"],
            "custom_details": {name: notice[name] for name in ("count", "since", "until", "events")},
        },
        "client": "Sluice",
        **({"client_url": console} if console is not None else {}),
        "links": [{"href": url, "text": name} for name, url in links if url is not None],
    }


def mail(notice: Mapping[str, Any], console: str | None) -> str:
    """The text of a mail: a paragraph for each event."""
    parts = [_head(notice)]
    for event in notice["events"]:
        lines = [f"{_named(event)} {_words(event)} at {event['at']}", event["reason"], _url(event, console) or ""]
        parts.append("\n".join(filter(None, lines)))
    if rest := notice["count"] - len(notice["events"]):
        parts.append(f"and {rest} more, from {notice['since']} to {notice['until']}")
    return "\n\n".join(parts) + "\n"


def _summary(notice: Mapping[str, Any]) -> str:
    """What one event is about; of several, how many there are."""
    if notice["count"] != 1:
        return _head(notice)
    event = notice["events"][0]
    return f"{_named(event)} {_words(event)}"


def _head(notice: Mapping[str, Any]) -> str:
    return f"{notice['workflow']}: {count_of(notice['count'], 'event')}"


def _named(event: Mapping[str, Any]) -> str:
    element = "" if event.get("element") is None else f"[{event['element']}]"
    return f"{event['schedule']}{element}"


def _words(event: Mapping[str, Any]) -> str:
    return WORDS.get(event["what"], str(event["what"]))


def _url(event: Mapping[str, Any], console: str | None) -> str | None:
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


def _shortened(text: str, most: int) -> str:
    """A text without escapes of at most ``most`` characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _paragraph(inlines: list[Json]) -> Json:
    return {"type": "RichTextBlock", "inlines": inlines}


def _run(text: str, **style: str) -> Json:
    """A text in which nothing is markup."""
    return {"type": "TextRun", "text": text, **style}
