"""Derive what the agent decides by from its settings."""

from datetime import timedelta

from kube_node_ready.agent.model import AgentPolicy, Rules
from kube_node_ready.api.objects import Taint
from kube_node_ready.settings.agent import Settings
from kube_node_ready.verification.model import Gate

_SLOW_RETRY = timedelta(minutes=5)
_POLL_INTERVAL = timedelta(seconds=10)
_CONTINUOUS_POLL_INTERVAL = timedelta(seconds=60)


def rules(settings: Settings) -> Rules:
    interval = timedelta(seconds=settings.check_interval)
    continuous = settings.mode == "continuous"
    policy = AgentPolicy(
        gates=(Gate(settings.taint_key, settings.taint_effect),),
        label=settings.verified_label,
        label_value=settings.verified_label_value,
        max_failures=settings.max_retries + 1,
        exponential=settings.retry_backoff == "exponential",
        slow_retry=interval if continuous else _SLOW_RETRY,
    )
    return Rules(
        policy=policy,
        gate=Taint(settings.taint_key, settings.taint_effect, settings.taint_value),
        initial_timeout=timedelta(seconds=settings.checks.timeout_seconds),
        continuous=continuous,
        interval=interval,
        threshold=settings.failure_threshold,
        poll_interval=min(interval, _CONTINUOUS_POLL_INTERVAL) if continuous else _POLL_INTERVAL,
    )
