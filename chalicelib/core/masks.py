"""What may be a secret in documents and texts that outlive the rows of Sluice: audit records, and the lake.

A record has to show which fields were given, and that a value has changed. So names stay, the host of a URL stays, and
a long value without parts gets a fingerprint. A secret of an unknown form in a free text stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from chalicelib.core import ids

MASK = "***"
# A fingerprint has 16 bits: enough to see a change, too few to find a value of this length by trying.
FINGERPRINT, LEAST = 4, 16
# What divides a value into parts: a short part may be all that a reader does not know.
_DIVIDES = re.compile(r"[\s?&;,\"'{}\[\]]|=(?!=*$)")

# The endings of names of secrets; `compass` and `bypass` are none.
_PASSWORD = (
    r"pass(?:word|wd|phrase)|pwd|(?<!com)(?<!by)pass(?![a-z])|secret|token|credentials?|signature"
    r"|(?:secret|private|api|access|account)[-_.]?key"
)
_NAME = re.compile(_PASSWORD, re.I)
_SECRET = re.compile(f"{_PASSWORD}|authorization|cookie|private", re.I)
# The values below these fields are the users' own. They may hold a secret under any name. So may variables of Spark's
# environments, such as spark.executorEnv.HOOK and spark.emr-serverless.driverEnv.HOOK.
_OWN = frozenset({"headers", "env", "environment", "properties", "data", "data_base64", "input", "payload"})
_VARIABLE = "Env."
_REFERENCE = frozenset({"ssm", "secrets_manager", "host"})  # the fields of a reference to a secret, which has no value
_PATH = re.compile(r"(/[A-Za-z0-9_.-]+)+")  # a parameter of SSM, which ``secret`` may name
_ARN = re.compile(r"arn:aws[a-z-]*:(secretsmanager|ssm):[a-z0-9-]*:[0-9*]*:(secret:|parameter/)\S+")
# The name of an option. After one dash it is a letter, or a property of Java: what follows may be the value, as in
# -phunter2.
_OPTION = re.compile(r"--[A-Za-z][\w.-]*|-[A-Za-z]")
_PROPERTY = re.compile(r"-D[A-Za-z][\w.-]*")
_ADDRESS = re.compile(r"\b(?!s3[an]?://)[a-z][a-z0-9+.-]{1,20}://[^\s\"'<>]+", re.I)
_NAMED = re.compile(rf"((?:{_PASSWORD})=[\"']?)([^\s&;,#\"'<>]+)", re.I)
# After a colon, as in a log or in JSON. Sentences have colons too, so the value must look like a password: a digit in
# at least six characters, and neither a path, an address nor an ARN.
_SAID = re.compile(
    rf"((?<!:)(?:{_PASSWORD})[\"']?: {{0,3}}[\"']?)"
    r"(?!arn:|/|[a-z][a-z0-9+.-]{1,20}://)(?=\S{0,200}\d)([^\s&;,#\"'<>]{6,})",
    re.I,
)
# Forms in which services issue credentials; each begins with a text that hardly anything else has. The first parts have
# a longest length, so that a text of many beginnings costs little time.
# https://docs.github.com/en/code-security/secret-scanning/introduction/supported-secret-scanning-patterns
_TOKENS = re.compile(
    r"\b(?:(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"  # an access key of AWS
    r"|gh[opusr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}"  # GitHub, GitLab
    r"|xox[a-z]-[\w-]{10,}|xapp-[\w-]{10,}"  # Slack
    r"|eyJ[\w-]{5,300}\.[\w-]{5,}(?:\.[\w-]*)?"  # a JSON Web Token
    r"|[sr]k_(?:live|test)_\w{10,}|AIza[\w-]{30,}|ya29\.[\w-]{20,}"  # Stripe, Google
    r"|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{50,}|SG\.[\w-]{16,64}\.[\w-]{16,})"  # npm, PyPI, SendGrid
    r"|(?<=\b(?i:Bearer) )(?=\S{0,200}\d)[\w.~+/=-]{8,}"
    r"|(?<=\b(?i:Basic) )(?=\S{0,200}?(?:[0-9+/=]|[a-z][A-Z]))[A-Za-z0-9+/=]{8,}"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)"
)


def is_secret(name: str, value: str) -> bool:
    """Whether the name of a field says that its text is a secret: a token, a password or a key. The ARN of one is
    none."""
    return _NAME.search(name) is not None and _ARN.fullmatch(value) is None


def masked(value: Any, own: bool = False) -> Any:
    """A document without what may be a secret. With ``own``, all values are those of a user, and none is shown."""
    if isinstance(value, Mapping):
        return {name: _of_field(str(name), part, own) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [masked(part, own) for part in value]
    if own:
        return value if value in (None, "") else mask(value)
    return text(value) if isinstance(value, str) else value


def text(value: str) -> str:
    """A text without known forms of credentials, and without users and queries of web addresses."""
    if "://" in value:
        value = _ADDRESS.sub(lambda found: _address(found[0], lambda path: path), value)
    value = _NAMED.sub(lambda found: f"{found[1]}{_once(found[2])}", value) if "=" in value else value
    value = _SAID.sub(lambda found: f"{found[1]}{_once(found[2])}", value) if ":" in value else value
    return _TOKENS.sub(lambda found: mask(found[0]), value)


def url(value: str) -> str:
    """A web address without its path, which often is the password of a webhook."""
    return _address(value, lambda path: f"/{mask(path)}" if path not in ("", "/") else path)


def mask(value: Any) -> str:
    """The mask of a value, with a fingerprint if the value is long and has no parts."""
    if not isinstance(value, str) or len(value) < LEAST or _DIVIDES.search(value):
        return MASK
    return f"{MASK}{ids.digest(value, length=FINGERPRINT)}"


def _of_field(name: str, value: Any, own: bool) -> Any:
    if value in (None, "", {}, [], ()):
        return value
    own = own or _VARIABLE in name
    if not own and _names_secrets(name, value):
        return value
    if not own and name == "headers" and isinstance(value, Mapping):
        return {header: each if _is_reference(each) else masked(each, own=True) for header, each in value.items()}
    if _SECRET.search(name):
        return mask(value)
    if name == "arguments" and isinstance(value, list | tuple):
        return [_argument(str(part)) for part in value]
    if name == "url" and isinstance(value, str) and not own:
        return url(value)
    return masked(value, own or name in _OWN)


def _names_secrets(name: str, value: Any) -> bool:
    """Whether the value of a field names secrets and holds none: a reference, a path, an ARN, or the list of them in an
    allow-list."""
    if isinstance(value, Mapping):
        return _is_reference(value)
    if name == "secret" and isinstance(value, str) and _PATH.fullmatch(value):
        return True
    listed = value if isinstance(value, list | tuple) else (value,)
    return all(isinstance(each, str) and _ARN.fullmatch(each) for each in listed)


def _is_reference(value: Any) -> bool:
    return isinstance(value, Mapping) and value.keys() <= _REFERENCE


def _argument(value: str) -> str:
    """An argument of a command: the name of an option stays."""
    option, sign, given = value.partition("=")
    if not _OPTION.fullmatch(option) and not (given and _PROPERTY.fullmatch(option)):
        return mask(value) if value else value
    return f"{option}={mask(given)}" if sign and given else value


def _address(value: str, path_of: Callable[[str], str]) -> str:
    """A web address without its user, and without the values of its query. It may be malformed."""
    scheme, _, rest = value.partition("://")
    rest, sharp, fragment = rest.partition("#")
    rest, sign, query = rest.partition("?")
    place, slash, path = rest.partition("/")
    _, at, host = place.rpartition("@")
    pairs = "&".join(_pair(pair) for pair in query.split("&"))
    shown = f"{scheme}://{MASK}@{host}" if at else f"{scheme}://{host}"
    return f"{shown}{path_of(slash + path)}{sign}{pairs if query else ''}{sharp}{mask(fragment) if fragment else ''}"


def _pair(pair: str) -> str:
    """A part of a query: its name stays, if it has one."""
    name, sign, value = pair.partition("=")
    return f"{name}={mask(value)}" if sign else mask(pair)


def _once(value: str) -> str:
    """The mask of a value that may have one already, as that of a query."""
    return value if value.startswith(MASK) else mask(value)
