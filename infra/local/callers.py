"""The access keys that ministack knows, passed to the emulator of EMR Serverless.

ministack gives each function its own keys, made for its role when its process starts, and makes keys for users. The
emulator is another process, and gets only the access key of a request. The file maps each key to who signs with it,
and to its secret, with which the emulator verifies signatures. Only its owner may read the file."""

from __future__ import annotations

import contextvars
import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.local.guard import SecretOf
from infra.local.layout import write_private

_OF_USERS = ("CreateAccessKey", "UpdateAccessKey", "DeleteAccessKey")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who signs with a key: the ARN of a user or of an assumed role."""

    arn: str
    secret: str

    @property
    def role(self) -> str | None:
        """The name of the assumed role, or None for a user."""
        return self.arn.split("/")[1] if ":assumed-role/" in self.arn else None


def install(sts: Any, iam: Any, lambdas: Sequence[Any], path: Path, root_secret: str) -> None:
    """Make ministack write its keys after each change. `lambdas` are the modules that make the keys of Lambdas: their
    secrets become secret here, because ministack computes them from names alone."""
    lock = threading.Lock()
    written: list[dict[str, Any]] = []
    is_lambda = contextvars.ContextVar("is_lambda", default=False)
    register: Callable[[str, dict[str, Any]], None] = sts.register_session

    def write() -> None:
        with lock:
            known = {key: [made["Arn"], made["SecretAccessKey"]] for key, made in list(sts._sessions.items())}
            for (account, key), made in iam._access_keys.to_dict().items():
                if made["Status"] == "Active":
                    known[key] = [f"arn:aws:iam::{account}:user/{made['UserName']}", made["SecretAccessKey"]]
            if written != [known]:
                written[:] = [known]
                write_private(path, json.dumps(known))

    def registered(access_key: str, session: dict[str, Any]) -> None:
        if is_lambda.get():
            session["SecretAccessKey"] = _derived(root_secret, access_key)
        register(access_key, session)
        write()

    def secretly(credentials: Callable[..., dict[str, str]]) -> Callable[..., dict[str, str]]:
        def made_for(*args: Any, **kwargs: Any) -> dict[str, str]:
            token = is_lambda.set(True)
            try:
                made = credentials(*args, **kwargs)
            finally:
                is_lambda.reset(token)
            return {**made, "AWS_SECRET_ACCESS_KEY": _derived(root_secret, made["AWS_ACCESS_KEY_ID"])}

        return made_for

    def then_written(handler: Callable[..., Any]) -> Callable[..., Any]:
        def handle(*args: Any, **kwargs: Any) -> Any:
            answer = handler(*args, **kwargs)
            write()
            return answer

        return handle

    sts.register_session = registered
    for module in lambdas:
        module.execution_credentials = secretly(module.execution_credentials)
    for action in _OF_USERS:
        iam._IAM_HANDLERS[action] = then_written(iam._IAM_HANDLERS[action])


def secret_of(sts: Any, iam: Any, root_key: str, root_secret: str) -> SecretOf:
    """The secrets that ministack knows, for its own guard."""

    def secret(access_key: str) -> str | None:
        if access_key == root_key:
            return root_secret
        if (session := sts._sessions.get(access_key)) is not None:
            return str(session["SecretAccessKey"])
        for (_, key), made in iam._access_keys.to_dict().items():
            if key == access_key and made.get("Status") == "Active":
                return str(made["SecretAccessKey"])
        return None

    return secret


class Callers:
    """The file, read again after a change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at: int | None = None
        self._known: dict[str, Caller] = {}

    def get(self, access_key: str) -> Caller | None:
        """Who signs with a key; None for a key that ministack does not know."""
        try:
            changed_at = self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return None
        if changed_at != self._read_at:
            found = json.loads(self._path.read_text())
            self._known = {key: Caller(arn, secret) for key, (arn, secret) in found.items()}
            self._read_at = changed_at
        return self._known.get(access_key)


def _derived(root_secret: str, access_key: str) -> str:
    """A secret that nobody computes without that of the root key."""
    return hashlib.sha256(f"{root_secret}\0{access_key}".encode()).hexdigest()
