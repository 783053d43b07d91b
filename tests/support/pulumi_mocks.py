"""Pulumi's own mocks in place of an engine: they see every resource, though not what depends on what."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi.runtime.stack import run_pulumi_func

from kubernetes_daemonset.backends.pulumi import type_token
from kubernetes_daemonset.deploy import loader
from kubernetes_daemonset.render import resources

Json = dict[str, Any]

MARK = "4dabf18193072939515e22adb298388d"  # Pulumi's, of values that are more than they look
SECRET_MARK = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  what stands behind the mark of a secret


@dataclass
class Engine(pulumi.runtime.Mocks):
    """Takes every resource, and answers with what it was given and a status."""

    status: Json | None = None
    seen: list[pulumi.runtime.MockResourceArgs] = field(default_factory=list)

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[Json, None]:
        raise AssertionError(args.token)

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, Json]:
        self.seen.append(args)
        status = {"status": self.status} if self.status and args.typ.endswith(":DaemonSet") else {}
        return f"id of {args.name}", args.inputs | status

    @property
    def objects(self) -> dict[str, Json]:
        """The Kubernetes objects by their type, as an API server would get them."""
        return {f"{one.typ} {one.name}": plain(one.inputs) for one in self.seen if one.typ.startswith("kubernetes:")}


def plain(value: Any) -> Any:  # noqa: ANN401  JSON
    """Without the marks of secrets, and with whole numbers as such: Pulumi's are floating-point."""
    match value:
        case {"value": inner} if value.get(MARK) == SECRET_MARK:
            return plain(inner)
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def deploy(
    of: Callable[[], pulumi.Output[Any] | None], engine: Engine | None = None, *, preview: bool = False
) -> tuple[Engine, Any]:
    """Runs a program to its end. Returns what the engine saw, and the value that the program asked for."""
    engine = engine or Engine()
    of_the_mocks = asyncio.new_event_loop()  # they make one in each thread that they run in, and leave it open

    async def run() -> Any:  # noqa: ANN401
        workers = ThreadPoolExecutor(1, initializer=asyncio.set_event_loop, initargs=(of_the_mocks,))
        asyncio.get_running_loop().set_default_executor(workers)
        pulumi.runtime.set_mocks(engine, preview=preview, logger=logging.getLogger("engine"))
        asked: list[pulumi.Output[Any] | None] = []
        await run_pulumi_func(lambda: asked.append(of()))
        return await asked[0].future() if asked[0] is not None else None

    with contextlib.closing(of_the_mocks):
        return engine, asyncio.run(run())


def rendered(of: Json) -> list[Json]:
    return resources.render(loader.load_valid(of, "test")[0].input)


def named(objects: list[Json], component: str = "agent") -> dict[str, Json]:
    return {f"{type_token(one)} {component}/{one['kind']}/{one['metadata']['name']}": one for one in objects}
