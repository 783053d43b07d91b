"""The controller's process, as far as it can be had without a cluster."""

import asyncio
import json

import pytest
import uvloop

from kube_node_ready import lifecycle


def test_an_error_that_only_the_loop_hears_of_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    async def meet_it() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lifecycle.told_by_the_loop)
        loop.call_soon(int, "none")
        await asyncio.sleep(0)

    uvloop.run(meet_it())
    said = capfd.readouterr()
    assert said.err == ""
    (line,) = said.out.splitlines()
    assert json.loads(line)["error"] == """ValueError("invalid literal for int() with base 10: 'none'")"""
