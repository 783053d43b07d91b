"""Probes and lifecycle hooks of a container."""

from kubernetes_daemonset.api.shared.container_pb2 import Lifecycle, LifecycleHandler
from kubernetes_daemonset.api.shared.probe_pb2 import ExecAction, HttpGetAction, Probe, TcpSocketAction
from kubernetes_daemonset.render.fields import drop_none, optional
from kubernetes_daemonset.types import Json


def probe(this: Probe) -> Json:
    times = optional(
        this,
        "initial_delay_seconds",
        "period_seconds",
        "timeout_seconds",
        "success_threshold",
        "failure_threshold",
        "termination_grace_period_seconds",
    )
    return _question(this) | times


def lifecycle(this: Lifecycle) -> Json:
    return drop_none(
        {
            "postStart": _hook(this.post_start) if this.HasField("post_start") else None,
            "preStop": _hook(this.pre_stop) if this.HasField("pre_stop") else None,
        }
    )


def _question(this: Probe) -> Json:
    match this.WhichOneof("handler"):
        case "http_get":
            return {"httpGet": _request(this.http_get)}
        case "grpc":
            return {"grpc": drop_none({"port": this.grpc.port, "service": this.grpc.service or None})}
        case "tcp_socket":
            return {"tcpSocket": drop_none({"port": _port(this.tcp_socket), "host": this.tcp_socket.host or None})}
        case _:
            return _command(this.exec)


def _hook(this: LifecycleHandler) -> Json:
    match this.WhichOneof("handler"):
        case "http_get":
            return {"httpGet": _request(this.http_get)}
        case "sleep_seconds":
            return {"sleep": {"seconds": this.sleep_seconds}}
        case _:
            return _command(this.exec)


def _request(this: HttpGetAction) -> Json:
    return drop_none(
        {
            "path": this.path or None,
            "port": _port(this),
            "host": this.host or None,
            "scheme": this.scheme or None,
            "httpHeaders": [{"name": header.name, "value": header.value} for header in this.http_headers] or None,
        }
    )


def _command(this: ExecAction) -> Json:
    return {"exec": {"command": list(this.command)}}


def _port(this: HttpGetAction | TcpSocketAction) -> int | str:
    return this.port_name or this.port_number
