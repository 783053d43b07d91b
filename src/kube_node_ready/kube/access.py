"""Where the API server is, and what we show it.

Kubeconfigs, ServiceAccounts, rotated tokens and exec plugins are lightkube's matter; here its httpx2 way of
authenticating is driven without a request of httpx2's.
"""

import asyncio
import json
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import msgspec
import yaml
from lightkube.config.client_adapter import user_auth, verify_cluster
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.config.models import NameValue, User, UserExec
from lightkube.core.exceptions import ConfigError
from msgspec import Struct

from kube_node_ready.http_syntax import is_field_value, is_host, without_user
from kube_node_ready.kube.errors import AccessError
from kube_node_ready.kube.kubeconfig import load

_AUTHORIZATION = "Authorization"
_OLD_EXEC = "client.authentication.k8s.io/v1beta1"
_NEW_EXEC = "client.authentication.k8s.io/v1"
_REREAD_SECONDS = 60.0
_UNAUTHORIZED = 401
_CREDENTIALS = User.__struct_fields__  # a user has nothing else
_TOKEN_EXPECTED = "visible ASCII characters on one line"  # noqa: S105  not a token


class Access(Struct, frozen=True):
    """One API server, and one identity there."""

    server: str
    namespace: str
    tls: ssl.SSLContext
    auth: httpx2.Auth | None = None
    token_in_file: bool = False


def access(kubeconfig: Path | None = None, context: str | None = None) -> Access:
    """By that file, or by those if there are colons in it as in `KUBECONFIG`; without one, as a pod's ServiceAccount,
    by `KUBECONFIG`, or by ~/.kube/config. Without a `context`, by the one that is current there.
    """
    where = str(kubeconfig) if kubeconfig else "ServiceAccount, KUBECONFIG or ~/.kube/config"
    try:
        return _access(load(kubeconfig), context)
    except yaml.YAMLError as why:
        raise AccessError(f"{where}: this is not YAML: {_first_line(why)}") from why
    except ssl.SSLError as why:
        raise AccessError(f"{where}: a certificate or key in it cannot be used: {why}") from why
    except KeyError as why:
        raise AccessError(f"{where}: {why} is missing") from why
    except (TypeError, AttributeError) as why:
        raise AccessError(f"{where}: this is no kubeconfig: it holds something else, or nothing") from why
    except (ConfigError, msgspec.MsgspecError, OSError, ValueError) as why:
        raise AccessError(f"{where}: {_first_line(why)}") from why


def _access(config: KubeConfig, context: str | None) -> Access:
    chosen = config.get(context)
    assert chosen is not None, "without a default, lightkube raises"
    _check_server(chosen.cluster.server)
    user = _user(chosen)
    _check_encryption(chosen.cluster.server, user)
    _check_token(user.token)
    _check_files(chosen, user)
    tls = verify_cluster(chosen.cluster, user, chosen.abs_file, trust_env=False)
    return Access(
        server=chosen.cluster.server.rstrip("/"),
        namespace=chosen.namespace,
        tls=tls,
        auth=user_auth(user),
        token_in_file=user.token_file is not None,
    )


def _check_server(server: str) -> None:
    if not _is_server(server):
        expected = "a URL such as https://10.0.0.1:6443, without a user name, a query or spaces"
        raise ConfigError(f"server: {without_user(server)!a} is invalid; expected {expected}")


def _is_server(server: str) -> bool:
    # urlsplit silently drops line breaks and leading spaces, so the text itself is checked.
    if not server.isascii() or not server.isprintable() or not set(server).isdisjoint(' ?#@\\"<>'):
        return False
    try:
        url = urlsplit(server)
        has_port = url.port is None or url.port > 0
    except ValueError:
        return False
    return url.scheme in ("https", "http") and bool(url.hostname) and has_port and is_host(url.netloc)


def _check_encryption(server: str, user: User) -> None:
    """Without credentials, as with `kubectl proxy`, plain HTTP does no harm. client-go drops them silently."""
    if urlsplit(server).scheme == "http" and any(getattr(user, field) for field in _CREDENTIALS):
        expected = "an https:// URL, because http:// would send the user's credentials unencrypted"
        raise ConfigError(f"server: {server!a} is invalid; expected {expected}")


def _check_token(token: str | None) -> None:
    if token is not None and not is_field_value(token):
        raise ConfigError(f"token: a value that is not shown is invalid; expected {_TOKEN_EXPECTED}")


def _check_files(chosen: SingleConfig, user: User) -> None:
    """OpenSSL does not say which file it missed."""
    named = {
        "certificate-authority": chosen.cluster.certificate_auth,
        "client-certificate": user.client_cert,
        "client-key": user.client_key,
        "tokenFile": user.token_file,
    }
    for field, name in named.items():
        if name and not Path(chosen.abs_file(name)).exists():
            raise ConfigError(f"{field} names {name}, and there is no such file")


def _user(chosen: SingleConfig) -> User:
    user = chosen.user or User()
    if user.token_file is not None:
        user = msgspec.structs.replace(user, token_file=str(chosen.abs_file(user.token_file)))
    if user.exec is not None and user.exec.apiVersion == _NEW_EXEC:
        user = msgspec.structs.replace(user, exec=_as_old(user.exec))
    return user


def _as_old(plugin: UserExec) -> UserExec:
    """Lightkube knows the beta of the exec protocol. What it reads of an answer is the same in v1."""
    asked = {"kind": "ExecCredential", "apiVersion": plugin.apiVersion, "spec": {"interactive": False}}
    told = NameValue("KUBERNETES_EXEC_INFO", json.dumps(asked))
    return msgspec.structs.replace(plugin, apiVersion=_OLD_EXEC, env=[*(plugin.env or []), told])


class Login:
    """The Authorization header of the moment. Fetched when first needed, and anew when the server refuses it."""

    def __init__(self, shown: Access) -> None:
        self._auth = shown.auth
        self._server = shown.server
        self._ages = shown.token_in_file
        self._header: str | None = None
        self._since = -1.0
        self._turn = asyncio.Lock()

    async def header(self) -> str | None:
        if self._auth is None:
            return None
        if self._header is None or self._old():
            await self._fetch(self._header, again=self._header is not None)
        return self._header

    async def renew(self, refused: str | None) -> bool:
        """After a 401: whether there is now something else to show."""
        if self._auth is not None:
            await self._fetch(refused, again=True)
        return self._header != refused

    def _old(self) -> bool:
        # The kubelet rotates a token well before it expires; waiting for the 401 would waste the first request after.
        return self._ages and asyncio.get_running_loop().time() - self._since > _REREAD_SECONDS

    async def _fetch(self, known: str | None, *, again: bool) -> None:
        """One at a time: a hundred refused requests are no reason to start a hundred plugins."""
        async with self._turn:
            if self._header != known:
                return
            self._since = asyncio.get_running_loop().time()
            self._header = await self._ask(again=again) or self._header

    async def _ask(self, *, again: bool) -> str | None:
        assert self._auth is not None
        request = httpx2.Request("GET", self._server)
        flow = self._auth.async_auth_flow(request)
        try:
            await anext(flow)
            if again:
                await flow.asend(httpx2.Response(_UNAUTHORIZED, request=request))
        except StopAsyncIteration:
            pass  # a static token: there is no other
        except KeyError as why:
            raise AccessError(f"the exec plugin's answer has no {why}; only plugins that give a token work") from why
        except UnicodeEncodeError:  # its text quotes a character of the token
            raise AccessError(f"no credentials for {self._server}: the token is not ASCII text") from None
        except (ConfigError, OSError, ValueError, TypeError) as why:
            raise AccessError(f"no credentials for {self._server}: {_first_line(why)}") from why
        finally:
            await flow.aclose()
        header: str | None = request.headers.get(_AUTHORIZATION)
        if header is not None and not is_field_value(header):
            raise AccessError(f"no credentials for {self._server}: the token is invalid; expected {_TOKEN_EXPECTED}")
        return header


def _first_line(why: BaseException) -> str:
    lines = [line.strip() for line in str(why).splitlines() if line.strip()]
    return lines[0] if lines else type(why).__name__
