"""A kubeconfig's login program (`exec`): asked for a token when one is first needed, and again when it is refused.

Lightkube has one too. It knows the protocol's beta only, waits for ever, and keeps to itself what the program says to
its user: which page to open, which code to type.
"""

import json
import os
import subprocess
from collections.abc import Generator
from http import HTTPStatus
from typing import Final

import httpx2
from lightkube.config.models import UserExec

_SECONDS: Final = 300  # someone may have to log in on a web page, for which login programs give up to three minutes


class LoginError(Exception):
    """The program gives no token."""


class Login(httpx2.Auth):
    """Shows what the program gave."""

    def __init__(self, program: UserExec) -> None:
        self._program = program
        self._token = ""

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        if self._token and (yield self._shown(request)).status_code != HTTPStatus.UNAUTHORIZED:
            return
        self._token = _token(self._program)
        yield self._shown(request)

    def _shown(self, request: httpx2.Request) -> httpx2.Request:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def _token(program: UserExec) -> str:
    try:
        token = json.loads(_output(program))["status"]["token"]
    except (ValueError, KeyError, TypeError) as why:
        raise LoginError(f"{program.command} printed no token") from why
    if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable():
        raise LoginError(f"{program.command} printed no token")
    return token


def _output(program: UserExec) -> bytes:
    asked = {"kind": "ExecCredential", "apiVersion": program.apiVersion, "spec": {"interactive": os.isatty(0)}}
    further = {one.name: one.value for one in program.env or []} | {"KUBERNETES_EXEC_INFO": json.dumps(asked)}
    command = [program.command, *(program.args or [])]
    environment = os.environ | further
    try:
        # The kubeconfig names the program, as for kubectl; no shell is involved.
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, timeout=_SECONDS, check=False)  # noqa: S603
    except OSError as why:
        hint = "".join(f"; {' '.join(text.split())}" for text in [program.installHint] if text)
        raise LoginError(f"{program.command}: {why.strerror}{hint}") from why
    except subprocess.TimeoutExpired as why:
        raise LoginError(f"{program.command} gave no answer within {_SECONDS:g} s") from why
    if done.returncode:
        raise LoginError(f"{program.command} ended with {done.returncode}")
    return done.stdout
