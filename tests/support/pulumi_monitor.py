"""A Pulumi engine for tests, reached over gRPC like the real one:
`python -m tests.support.pulumi_monitor` is the program's side, in a process of its own.

Neither Pulumi's command line nor its Kubernetes plugin comes with its wheel; the services that they offer a program do.
Unlike Pulumi's mocks, these see what depends on what, parents, providers, secrets and the stack's outputs, and the
code that runs a program here decides how a resource is made.
"""

import asyncio
import os
import runpy
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import pulumi.runtime
from google.protobuf.empty_pb2 import Empty
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, resource_pb2, resource_pb2_grpc

from tests.support.pulumi_mocks import MARK, SECRET_MARK, plain

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
PROJECT, STACK = "project", "stack"
_STACK_TYPE = "pulumi:pulumi:Stack"


@dataclass(frozen=True)
class Resource:
    """What a program asked for, with the marks of what is secret in it."""

    urn: str
    type: str
    name: str
    inputs: Json
    parent: str
    provider: str
    dependencies: frozenset[str]
    secret_outputs: tuple[str, ...]
    version: str


@dataclass(frozen=True)
class Run:
    """How a program ended, what it asked for in the order in which that was made, and what could not be made."""

    process: subprocess.CompletedProcess[str]
    resources: tuple[Resource, ...]
    refused: tuple[Resource, ...]
    outputs: Mapping[str, Json]

    @property
    def of_kubernetes(self) -> list[Resource]:
        return [one for one in self.resources if one.type.startswith("kubernetes:")]

    def only(self, of_type: str) -> Resource:
        (found,) = [one for one in self.resources if one.type == of_type]
        return found


# Makes a resource by means of its provider's inputs, and returns what it became; raises if that cannot be.
Maker = Callable[[Json, Json], Json]


def run(folder: Path, make: Maker, *, seconds: float = 90, **environment: str) -> Run:
    """Runs the Pulumi project in the folder to its end; what is left of it after so many seconds is killed."""
    monitor = _Monitor(make)
    with ThreadPoolExecutor(16) as workers:
        server = grpc.server(workers)
        resource_pb2_grpc.add_ResourceMonitorServicer_to_server(monitor, server)
        engine_pb2_grpc.add_EngineServicer_to_server(_Engine(), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            process = _run_program(f"127.0.0.1:{port}", folder, environment, seconds)
        finally:
            server.stop(grace=None).wait()
    return Run(process, tuple(monitor.made), tuple(monitor.refused), monitor.outputs)


def _run_program(
    address: str, folder: Path, environment: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.support.pulumi_monitor", address, str(folder)]
    merged = {**os.environ, "no_proxy": "127.0.0.1", **environment}  # a machine's proxy is not the way to the engine
    return subprocess.run(command, cwd=ROOT, env=merged, capture_output=True, text=True, check=False, timeout=seconds)


@dataclass
class _Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    make: Maker
    made: list[Resource] = field(default_factory=list)
    refused: list[Resource] = field(default_factory=list)
    outputs: dict[str, Json] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def GetDeploymentInfo(self, _: Empty, context: Any) -> resource_pb2.DeploymentInfo:  # noqa: ANN401, N802
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "not in older engines; a program then asks for each feature")
        raise AssertionError

    def SupportsFeature(  # noqa: N802
        self, _: resource_pb2.SupportsFeatureRequest, __: object
    ) -> resource_pb2.SupportsFeatureResponse:
        return resource_pb2.SupportsFeatureResponse(hasSupport=True)

    def RegisterPackage(  # noqa: N802
        self, request: resource_pb2.RegisterPackageRequest, _: object
    ) -> resource_pb2.RegisterPackageResponse:
        return resource_pb2.RegisterPackageResponse(ref=request.name)

    def RegisterResource(  # noqa: N802
        self,
        request: resource_pb2.RegisterResourceRequest,
        context: Any,  # noqa: ANN401
    ) -> resource_pb2.RegisterResourceResponse:
        expected = _resource(request)
        try:
            became = self._make(expected)
        except Exception as why:  # noqa: BLE001  whatever it is, the program has to hear of it
            with self.lock:
                self.refused.append(expected)
            context.abort(grpc.StatusCode.UNKNOWN, f"{expected.name}: {why}")
        with self.lock:
            self.made.append(expected)
        marked = {key: {MARK: SECRET_MARK, "value": became[key]} for key in expected.secret_outputs if key in became}
        answer = Struct()
        answer.update(became | marked)
        return resource_pb2.RegisterResourceResponse(urn=expected.urn, id=_id(expected), object=answer)

    def RegisterResourceOutputs(  # noqa: N802
        self, request: resource_pb2.RegisterResourceOutputsRequest, _: object
    ) -> Empty:
        with self.lock:
            self.outputs[request.urn] = plain(MessageToDict(request.outputs))
        return Empty()

    def SignalAndWaitForShutdown(self, _: Empty, __: object) -> Empty:  # noqa: N802
        return Empty()

    def _make(self, expected: Resource) -> Json:
        with self.lock:
            made = {one.urn: one for one in self.made}
        if expected.urn in made:
            raise ValueError(f"there is a resource {expected.urn} already")
        if missing := expected.dependencies - made.keys():
            raise ValueError(f"needs what is not there: {', '.join(sorted(missing))}")
        inputs: Json = plain(expected.inputs)
        if not expected.type.startswith("kubernetes:"):
            return inputs
        provider = made[expected.provider.rpartition("::")[0]]
        return self.make(inputs, plain(provider.inputs))


class _Engine(engine_pb2_grpc.EngineServicer):
    """Hears everything that a program logs, debugging included, and keeps it to itself."""

    def Log(self, _: engine_pb2.LogRequest, __: object) -> Empty:  # noqa: N802
        return Empty()


def _resource(request: resource_pb2.RegisterResourceRequest) -> Resource:
    return Resource(
        urn=_urn(request),
        type=request.type,
        name=request.name,
        inputs=MessageToDict(request.object),
        parent=request.parent,
        provider=request.provider,
        dependencies=frozenset(request.dependencies),
        secret_outputs=tuple(request.additionalSecretOutputs),
        version=request.version,
    )


def _urn(request: resource_pb2.RegisterResourceRequest) -> str:
    """As the real engine makes them: of the parent, its type alone."""
    above = request.parent.split("::")[2] if request.parent else ""
    below = "" if above in {"", _STACK_TYPE} else f"{above}$"
    return f"urn:pulumi:{STACK}::{PROJECT}::{below}{request.type}::{request.name}"


def _id(expected: Resource) -> str:
    return "" if expected.type == _STACK_TYPE else f"id-of-{expected.name}"


def _program(address: str, folder: str) -> None:
    pulumi.runtime.configure(
        pulumi.runtime.Settings(project=PROJECT, stack=STACK, monitor=address, engine=address, dry_run=False)
    )

    def main() -> None:
        runpy.run_path(folder, run_name="__main__")

    asyncio.run(pulumi.runtime.run_in_stack(main))


if __name__ == "__main__":
    _program(*sys.argv[1:])
