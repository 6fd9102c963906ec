"""Converts a crontab into an app document: each line becomes a workflow for workers, and a schedule.

The rules are those of crontab(5). A line of a user's file has five fields and a command; a line of the system's file
has the user between them. Settings (``NAME=value``) apply to the lines below. The first ``%`` of a command ends the
command. The text after it is the command's input, in which each ``%`` is a line break. ``\\%`` is a percent sign.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import PurePath

from sluice import zones
from sluice.client import Document
from sluice.convert import cron
from sluice.convert.draft import Draft, NotCarried, name_of
from sluice.errors import WrongUsage

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
SETTING = re.compile(r"""\s*("[^"]+"|'[^']+'|[A-Za-z_]\w*)\s*=\s*(.*?)\s*""")
MAX_ARGUMENT = 4_000  # characters of an argument of a worker
# Words at the beginning of a command that define how a program runs, and so do not name the program.
WRAPPERS = {
    *("nice", "ionice", "env", "exec", "sudo", "nohup", "time", "chronic"),
    *("sh", "bash", "python", "python3", "php", "perl", "ruby", "node"),
}


@dataclass
class Settings:
    """The settings that apply to a line. ``zone`` is None until the file or the user names one."""

    zone: str | None
    shell: str = "/bin/sh"
    delay: int = 0
    variables: dict[str, str] = field(default_factory=dict)


def convert(text: str, draft: Draft, zone: str | None = None, system: bool = False) -> None:
    """Read a crontab into the draft. ``system``: each line names a user before the command."""
    settings, comment = Settings(zone), ""
    for number, line in enumerate(text.splitlines(), 1):
        where, stripped = f"line {number}", line.strip()
        if not stripped or stripped.startswith("#"):
            comment = _comment(stripped)
        elif setting := SETTING.fullmatch(line):
            comment = ""
            _set(draft, where, setting[1].strip("\"'"), _unquoted(setting[2]), settings)
        else:
            try:
                _job(draft, where, stripped, settings, comment, system)
            except NotCarried as lost:
                draft.find(where, f"{stripped!r} was not converted: {lost.what}", lost.why, lost.todo)
            comment = ""
    if not draft.parts["schedules"] and not draft.findings:
        raise WrongUsage("expected a crontab with lines such as '0 5 * * * command', got none", draft.source)


def _job(draft: Draft, where: str, line: str, settings: Settings, comment: str, system: bool) -> None:
    times, rest = _times(line)
    user, command = None, rest
    if system:
        user, command = (*rest.split(None, 1), "", "")[:2]
    if not command:
        missing = "a user and a command" if system else "a command"
        raise NotCarried("the line ends too early", f"{missing} must follow the five fields", "correct the line")
    if times == "@reboot":
        raise NotCarried(
            "@reboot",
            "Sluice runs on no machine that could start",
            "start the command with the machine (systemd), or run the schedule once by hand: sluice run",
        )
    trigger = cron.vixie(MACROS.get(times, times))
    if settings.delay:
        trigger["jitter"] = f"{settings.delay}m"
    if settings.zone is None:
        draft.find(
            "all lines",
            "the file names no time zone, so times are in UTC",
            "cron uses the zone of its machine",
            "convert again with --zone, for example --zone Europe/Paris",
        )
    name = name_of(_program(command))
    arguments = _arguments(command, settings)
    if max(map(len, arguments)) > MAX_ARGUMENT:
        raise NotCarried("the command", f"an argument has at most {MAX_ARGUMENT} characters", "move it into a script")
    pool = name_of(user, "cron") if user else "cron"
    workflow = draft.workflow(
        name,
        {
            "description": comment,
            "target": {"type": "worker", "pool": pool, "arguments": arguments},
            "timeout": "never",
        },
    )
    body: Document = {
        "workflow": workflow,
        "enabled": draft.mode(True),
        "zone": settings.zone,
        "trigger": trigger,
        "catch_up": "none",
    }
    draft.add("schedules", workflow, body)
    draft.find(
        f"pool {pool}",
        "the commands run on workers",
        "Sluice runs no shell; a worker on your machine asks for the runs of its pool",
        f"run there{f' as {user}' if user else ''}: sluice worker run --pool {draft.namespace}.{pool} --concurrency 10"
        " -- {args}",
    )


def _times(line: str) -> tuple[str, str]:
    """The five fields, or the macro, and the rest of a line."""
    if line.startswith("@"):
        macro, _, rest = line.replace("\t", " ").partition(" ")
        if macro.lower() not in MACROS and macro.lower() != "@reboot":
            known = ", ".join([*MACROS, "@reboot"])
            raise NotCarried(macro, f"cron knows {known}", "write five fields, or @every 5m as Sluice's expression")
        return macro.lower(), rest.strip()
    fields = line.split(None, 5)
    if len(fields) < 6:
        raise NotCarried("the line ends too early", "five fields and a command are needed", "correct the line")
    return " ".join(fields[:5]), fields[5]


def _arguments(command: str, settings: Settings) -> list[str]:
    """The words that a worker executes for a command. The command reads its input, the text after the first ``%``, from
    a pipe."""
    first, *lines = (part.replace(r"\%", "%") for part in re.split(r"(?<!\\)%", command))
    shell = [settings.shell, "-c", first.rstrip()]
    if len(lines) > 1 and not lines[-1]:
        lines.pop()  # cron ends the input with one line break, and the input may already end with one
    if any(lines):
        given = " ".join(map(shlex.quote, lines))
        shell = [settings.shell, "-c", f"printf '%s\\n' {given} | {shlex.join(shell)}"]
    variables = [f"{name}={value}" for name, value in settings.variables.items()]
    return ["env", *variables, *shell] if variables else shell


def _set(draft: Draft, where: str, name: str, value: str, settings: Settings) -> None:
    if name == "CRON_TZ":
        if zones.zone(value) is None:
            draft.find(where, f"CRON_TZ={value} is ignored", "no such time zone is known", "convert with --zone")
            return
        settings.zone = value
    elif name == "MAILTO":
        if value:
            draft.find(
                where,
                f"MAILTO={value} is not carried over",
                "Sluice sends no mail; it keeps the end of the output with each run (sluice runs show)",
                "add to each workflow `notify: [{on: [failed], to: {type: sns, topic_arn: ...}}]`, and subscribe "
                "the address to the topic",
            )
    elif name == "RANDOM_DELAY" and value.isascii() and value.isdigit():
        settings.delay = int(value)
    elif name == "SHELL":
        settings.shell = value
    elif name in ("MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING", "CRONDARGS", "START_HOURS_RANGE"):
        draft.find(where, f"{name} is not carried over", "it has no effect in Sluice", "nothing")
    else:
        settings.variables[name] = value


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


def _comment(line: str) -> str:
    """The text of a comment as a description; empty for a job or a setting that is commented out, and for a heading."""
    text = line.lstrip("#").strip()
    looks_like_a_job = re.match(r"(@\w+|[\d*][\S]*)(\s+\S+){2,}", text) or SETTING.fullmatch(text)
    return "" if looks_like_a_job or re.match(r"m\s+h\s", text) else text[:200]


def _program(command: str) -> str:
    """The name of the program in a command: ``backup`` for ``cd /srv && /usr/bin/nice ./backup.sh --all``."""
    last = re.split(r"&&|;", command)
    for part in last:
        words = [word for word in part.split() if "=" not in word and not word.startswith("-")]
        while words and PurePath(words[0]).name in WRAPPERS:
            words = words[1:]
        if words and words[0] not in ("cd", "test", "[", ".", "source", "export"):
            return PurePath(words[0].strip("\"'(")).stem
    return "job"
