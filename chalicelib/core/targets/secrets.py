"""Secrets that documents name and never contain: in SSM Parameter Store or Secrets Manager (E5).

Sluice reads the value right before a call. It stores the reference alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from chalicelib.core.access.allowed import own_arn
from chalicelib.core.documents import Sparse
from chalicelib.core.errors import invalid
from chalicelib.core.targets.target import REGION

PARAMETER = r"/[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*"
SECRET = r"[A-Za-z0-9/_+=.@-]{1,512}"
HOST = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"
MANAGED = "secretsmanager:"  # begins the name under which a secret of Secrets Manager is read, if it has no ARN

SecretName = Annotated[
    str,
    Field(
        pattern=rf"^({PARAMETER}|arn:aws[a-z-]*:secretsmanager:{REGION}:\d{{12}}:secret:[A-Za-z0-9/_+=.@-]+)$",
        max_length=1011,
    ),
]


class SecretReference(Sparse):
    """A secret by its name: the parameter ``ssm``, or the secret ``secrets_manager`` of the stack's account."""

    omitted: ClassVar[Collection[str]] = ("ssm", "secrets_manager")

    ssm: str | None = Field(default=None, pattern=f"^{PARAMETER}$", max_length=1011)
    secrets_manager: str | None = Field(default=None, pattern=f"^{SECRET}$")

    @model_validator(mode="after")
    def _is_one(self) -> SecretReference:
        if (self.ssm is None) == (self.secrets_manager is None):
            got = "both" if self.ssm is not None else "neither"
            raise invalid("", "either ssm or secrets_manager", got, "such as ssm: /sluice-target/demo/key")
        return self


class SecretUrl(SecretReference):
    """A web address that is a secret as a whole, such as that of a webhook with a key in its path. ``host`` is its
    host, so that allow-lists and readers know where a call goes."""

    host: str = Field(pattern=HOST, max_length=253)


def tag(given: Any) -> str:
    """The tag of a union of text and reference. Error paths leave out tags, which begin with ``@``."""
    return "@text" if isinstance(given, str) else "@reference"


_Reference = Annotated[SecretReference, Tag("@reference")]
Secret = Annotated[Annotated[SecretName, Tag("@text")] | _Reference, Discriminator(tag)]
TextOrSecret = Annotated[Annotated[str, Tag("@text")] | _Reference, Discriminator(tag)]


def _refuse_text(given: Any) -> Any:
    """Refuse a text in the place of a reference: it may be the secret itself, so the error does not repeat it."""
    if isinstance(given, str):
        hint = "put the value into a secret, and name it: {ssm: /sluice-target/<namespace>/<name>}"
        raise invalid("", "a secret by reference, because every reader sees a document", "a text", hint)
    return given


OnlyReference = Annotated[SecretReference, BeforeValidator(_refuse_text)]


def name_of(stored: str | Mapping[str, Any]) -> str:
    """The name under which a secret is read: a path of SSM, an ARN, or ``secretsmanager:<name>``."""
    if isinstance(stored, str):
        return stored
    return str(stored["ssm"]) if stored.get("ssm") else MANAGED + str(stored["secrets_manager"])


def arn_of(name: str) -> str:
    """The ARN of a secret by the name of `name_of`, as allow-lists have it."""
    if name.startswith("arn:"):
        return name
    if name.startswith(MANAGED):
        return own_arn("secretsmanager", f"secret:{name.removeprefix(MANAGED)}")
    return own_arn("ssm", f"parameter{name}")
