"""The page of measurements: written by the benchmark, never with a number that was not measured."""

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from bench import all as everything
from bench import charts, formatting, page, peers, plan, plots, results, targets
from bench.plots import Titles
from bench.results import Result, Results
from tests.support.shell import ROOT

TITLES = Titles("A <title> & more", "What it shows", "nodes", "seconds")
SVG = "{http://www.w3.org/2000/svg}"


def a_result(scenario: str, nodes: int, date: str = "2026-11-16T12:00:00+00:00", **figures: Any) -> Result:  # noqa: ANN401
    machine = {"cpu": "a CPU", "cores": 2, "memory_gibibytes": 24, "kernel": "6.18"}
    return Result(scenario, nodes, "nodes", date, machine, {"kubernetes": "1.36.3", "python": "3.11"}, figures)


def a_burst(nodes: int = 1000, **more: Any) -> Result:  # noqa: ANN401
    spread = {"p50": 40.0, "p95": 45.0, "p99": 47.0, "worst": 48.0}
    figures: dict[str, Any] = {
        "seconds_until_all_released": 80.0,
        "seconds": {"latency": spread},
        "seconds_until_asked": {"until_both_were": spread, "all_the_rest": spread},
        "seconds_by_node": {"controller": [1.0, 2.0], "control_plane": [3.0, 4.0]},
        "seconds_in_the_queue_at_most": {"p50": 0.001, "p95": 0.1, "p99": 0.5},
        "controller_cpu_seconds": 7.67,
        "controller_peak_mebibytes": 78.2,
        "controller_calls": {"create pods": nodes, "patch nodes": nodes, "update leases": 40, "watch nodes": 3},
        "calls_of_all_clients": 30_000,
        "cpu_seconds": {"kube-apiserver": 71.85},
        "other_share_of_the_machine": 0.01,
    }
    return a_result("burst", nodes, **(figures | more))


def row(text: str, start: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


# The page


def test_the_page_of_measurements_is_up_to_date() -> None:
    assert (ROOT / page.PAGE).read_text() == page.page(results.read()), page.__doc__


def test_its_plots_are_up_to_date() -> None:
    drawn = charts.drawn(results.read())
    there = {path.stem: path.read_text() for path in (ROOT / page.PLOTS).iterdir()}
    assert there == drawn, page.__doc__


def test_without_results_the_page_has_no_measurements() -> None:
    text = page.page(Results([]))
    first, promised = text.split("## How")[0].split("## What was promised")
    assert first.count(plots.NOT_MEASURED) == 8
    assert "times" not in first
    assert promised.count(plots.NOT_MEASURED) == len(targets.BARS) + 2
    assert "holds" not in promised
    assert row(text, "controller CPU s")[1:] == [plots.NOT_MEASURED, "15.3", "51.1", "13.8"]
    planned = [step for step in plan.STEPS if step.scenario not in plan.ALONE]
    twice, calls = 1, 1  # the churn's latency, and what is special about it
    assert text.split("## All")[1].split("## How")[0].count(plots.NOT_MEASURED) == len(planned) + twice + calls


def test_peers_are_ratios_to_ours() -> None:
    floor = a_result("floor", 1000, seconds_until_all_released=72.0, cpu_seconds={"kube-apiserver": 72.6})
    text = page.page(Results([a_burst(), floor, a_result("idle", 1000, controller_cpu_seconds_a_minute=0.066)]))
    assert row(text, "controller CPU s")[1:3] == ["7.67", "15.3 (2 times)"]
    assert row(text, "peak MiB")[2] == "156 (2 times)"
    assert row(text, "requests without")[1:3] == ["2,000", "2,003 (1.00 times)"]
    assert row(text, "at rest, CPU s per minute")[2] == "0.33 (5 times)"
    assert row(text, "time to all released")[1:3] == ["1.11", "2.02 (1.82 times)"]
    assert "beside the floor, 1.11 times as long" in text


def test_cpu_seconds_of_other_days_compare_by_the_floor_alone() -> None:
    slow = a_result("floor", 1000, seconds_until_all_released=99.0, cpu_seconds={"kube-apiserver": 145.2})
    assert row(page.page(Results([a_burst(), slow])), "controller CPU s")[2] == "15.3 (4 times)"
    assert row(page.page(Results([a_burst()])), "controller CPU s")[2] == "15.3"


def test_targets_are_met_or_missed() -> None:
    text = page.page(
        Results(
            [
                a_burst(controller_writes_a_node=5.0, controller_cpu_seconds=18.0),
                a_result("floor", 1000, seconds_until_all_released=72.0, cpu_seconds={"kube-apiserver": 145.2}),
                a_result("idle", 1000, controller_cpu_seconds_a_minute=0.05),
                a_result("idle", 5000, controller_cpu_seconds_a_minute=0.15),
            ]
        )
    ).split("## What was promised")[1]
    assert row(text, "… API writes per node")[1:] == ["5", "5", "holds"]
    assert row(text, "… with 5,000, in times of that")[1:] == ["2", "3.00", "**1.50 times that**"]
    assert row(text, "the worker as a process: CPU")[2:] == [plots.NOT_MEASURED, ""]
    assert row(text, "… CPU seconds")[1:] == ["9", "18", "**2.00 times that**; 9 when scaled to that day's speed"]
    assert row(text, "CPU seconds of the API server")[1:] == ["72.6", "145"]


def test_a_burst_that_was_never_finished_has_no_time() -> None:
    text = page.page(Results([a_burst(seconds_until_all_released=None)]))
    assert row(text, "1,000 nodes that join simultaneously")[1] == plots.NOT_MEASURED
    assert row(text, "burst | 1,000")[2] == "-"


def test_a_row_shows_the_parts_and_the_noise_of_a_nodes_latency() -> None:
    text = page.page(Results([a_burst(other_share_of_the_machine=0.3)]))
    cells_of_it = row(text, "burst | 1,000")
    assert cells_of_it[3:6] == ["40 / 45 / 47"] * 3
    assert cells_of_it[-2] == "≤ 0.001 / 0.1 / 0.5"
    assert cells_of_it[-1] == "30% (wall times too long)"


def test_growth_is_reported_per_node_and_by_the_floor() -> None:
    floor = a_result("floor", 1000, seconds_until_all_released=40.0)
    text = page.page(Results([a_burst(controller_writes_a_node=5.0), floor])).split("## How cost grows")[1]
    assert row(text, "1,000")[1:] == ["7.67", "5", "2"]
    assert row(text, "200")[1:] == [plots.NOT_MEASURED, "-", "-"]


def test_every_scenario_has_a_description() -> None:
    outage = a_result(
        "outage",
        1000,
        released="1000 of 1000",
        nodes_removed_by_the_controller=0,
        attempts_a_node={"least": 1, "mean": 2.5, "most": 3},
        while_it_lasted={"controller_cpu_seconds_a_minute": 6.1, "controller_calls_a_minute": 3000.0},
        seconds_from_its_end_until_all_released=120.4,
    )
    churn = a_result("churn", 1000, released="244 of 244", nodes_gone=300, pods_left_of_nodes_gone=0)
    worker = a_result("worker", 1, as_a_process={"cpu_milliseconds": {"median": 90.0, "worst": 99.0}}, rounds=20)
    text = page.page(Results([outage, churn, worker]))
    assert "| 1,000 | 1000 of 1000 | 0 | 2.50 (most 3) | 6.10 | 3,000 | 120 |" in text
    assert "| 1,000 | 244 of 244 | 300 (-) | 0 |" in text
    assert row(text, "CPU, as a process")[1] == "90 ms, 99"
    assert row(text, "CPU, by its control group")[1] == "could not be read"


def test_the_newest_result_counts_and_unplanned_sizes_are_shown_too() -> None:
    newer = a_burst(50, controller_cpu_seconds=1.0)
    older = Result("burst", 50, "nodes", "2026-01-01T00:00:00+00:00", {}, {}, {"controller_cpu_seconds": 9.0})
    found = Results([newer, older])
    assert found.value("burst", 50, "controller_cpu_seconds") == 1.0
    assert found.value("burst", 50, "controller_calls") is None
    assert row(page.page(found), "burst | 50")[6] == "1"


def test_the_same_results_are_the_same_bytes_in_whatever_order() -> None:
    some = [a_burst(), a_burst(200), a_result("idle", 1000, controller_cpu_seconds_a_minute=0.06)]
    assert page.page(Results(some)) == page.page(Results(reversed(some)))
    assert charts.drawn(Results(some)) == charts.drawn(Results(reversed(some)))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), (0.0, "0"), (0.066, "0.066"), (0.33, "0.33"), (9.96, "9.96"), (15.34, "15.3"), (1234.5, "1,234")],
)
def test_a_cell_has_three_digits_or_a_dash(value: float | None, shown: str) -> None:
    assert formatting.number(value) == shown


def test_there_is_no_ratio_to_nothing() -> None:
    assert peers.times_ours(3.0, 2.0) == 1.5
    assert peers.times_ours(3.0, None) is peers.times_ours(None, 2.0) is peers.times_ours(3.0, 0.0) is None


# Plots


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314  our own


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in parsed(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize(
    ("most", "top"), [(0, 1), (0.33, 0.4), (5, 5), (5.1, 6), (15.7, 20), (48, 50), (50, 50), (156, 200), (1000, 1000)]
)
def test_an_axis_ends_at_a_round_number_not_far_above_all_values(most: float, top: float) -> None:
    assert plots.axis(most)[-1] == pytest.approx(top)


def test_bars_have_the_height_and_the_label_of_their_values() -> None:
    svg = plots.bars(TITLES, ["200", "1,000"], {"ours": [10.0, 50.0], "theirs": [25.0, None]})
    ours, theirs = _boxes(svg, 0), _boxes(svg, 1)
    assert ours[1] == pytest.approx(5 * ours[0], rel=0.01)
    assert len(theirs) == 1
    assert {"10", "50", "25", "-", "ours", "theirs", "200", "1,000", "seconds", "nodes"} <= set(texts(svg))


def _boxes(svg: str, colour: int) -> list[float]:
    """Heights of a series' bars; the legend's little box is drawn after them."""
    found = [box for box in parsed(svg).iter(f"{SVG}rect") if box.get("class") == f"c{colour}"]
    return [float(box.get("height", "0")) for box in found[:-1]]


def test_stacks_are_labeled_with_their_sum() -> None:
    svg = plots.stacks(TITLES, ["200"], {"a": [1.0], "b": [3.0]})
    assert _boxes(svg, 1)[0] == pytest.approx(3 * _boxes(svg, 0)[0], rel=0.01)
    assert "4" in texts(svg)


def test_areas_end_at_the_sum_of_their_series() -> None:
    svg = plots.areas(TITLES, {"a": [1.0, 2.0], "b": [4.0, 8.0]})
    lower, upper = (_corners(element) for element in parsed(svg).iter(f"{SVG}polygon"))
    floor = max(y for _, y in lower)
    assert floor - min(y for _, y in upper) == pytest.approx(5 * (floor - min(y for _, y in lower)), rel=0.01)


def _corners(polygon: ET.Element) -> Sequence[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in polygon.get("points", "").split())]


def test_a_plot_without_figures_is_empty_with_a_note() -> None:
    for svg in (
        plots.bars(TITLES, ["200"], {"ours": [None]}),
        plots.stacks(TITLES, ["200"], {"ours": [None]}),
        plots.areas(TITLES, {"ours": []}),
    ):
        assert plots.NOT_MEASURED in texts(svg)
        assert 'class="c0"' not in svg


@pytest.mark.parametrize("found", [Results([]), Results([a_burst(), a_burst(200)])], ids=["empty", "measured"])
def test_plots_have_descriptions_for_screen_readers(found: Results) -> None:
    for name, svg in charts.drawn(found).items():
        top = parsed(svg)
        assert top.get("role") == "img"
        assert top.findtext(f"{SVG}title") == charts.TITLES[name].title
        assert top.findtext(f"{SVG}desc")
        assert "prefers-color-scheme: dark" in svg
        assert not re.search(r"<script|href|@import|url\(", svg)


def test_texts_stay_within_the_plot_and_do_not_overlap() -> None:
    calls = dict.fromkeys(("create events", "create pods", "delete pods", "patch nodes", "patch nodes/status"), 5000)
    for svg in charts.drawn(Results([a_burst(nodes, controller_calls=calls) for nodes in plan.BURSTS])).values():
        upright = [element for element in parsed(svg).iter(f"{SVG}text") if not element.get("transform")]
        spans = [(*_span(element), float(element.get("y", "0"))) for element in upright]
        assert all(left >= 0 and right <= 720 and 0 < base < 400 for left, right, base in spans)
        on_a_line = sorted((base, left, right) for left, right, base in spans)
        for (base, _, right), (next_base, left, _) in itertools.pairwise(on_a_line):
            assert base != next_base or right <= left


def _span(text: ET.Element) -> tuple[float, float]:
    """From where to where a text goes, for letters of a usual width."""
    width = len(text.text or "") * (9 if text.get("class") == "title" else 7)
    before = {"start": 0.0, "middle": width / 2, "end": float(width)}[text.get("text-anchor", "start")]
    left = float(text.get("x", "0")) - before
    return left, left + width


def test_titles_are_escaped() -> None:
    assert texts(plots.bars(TITLES, ["1"], {"a & b": [1.0]}))[0] == "A <title> & more"


# The plan


def test_every_requested_size_is_planned() -> None:
    planned = {step.name for step in plan.STEPS}
    assert {"burst-200", "burst-1000", "burst-5000", "idle-1000", "idle-5000"} <= planned
    assert {"trickle-600", "outage-1000", "churn-1000", "worker"} <= planned
    assert {f"floor-{nodes}" for nodes in plan.BURSTS} <= planned


def test_a_step_is_chosen_by_its_name_or_its_scenario() -> None:
    assert [step.name for step in everything.chosen(["idle", "burst-200"])] == ["burst-200", "idle-1000", "idle-5000"]
    assert everything.chosen([]) == list(plan.STEPS)
    assert everything.chosen(["burst-7"]) == []


def test_a_step_is_a_command() -> None:
    commands = {step.name: step.command for step in plan.STEPS}
    assert commands["burst-200"] == ["bench.operator", "burst", "200", "--save"]
    assert commands["worker"] == ["bench.worker", "--save"]
    assert commands["lab"] == ["bench.lab"]


def test_the_page_is_written_with_its_plots_and_old_plots_are_deleted(tmp_path: Path) -> None:
    (tmp_path / page.PLOTS).mkdir(parents=True)
    (tmp_path / page.PLOTS / "old.svg").write_text("")
    page.write(tmp_path)
    assert (tmp_path / page.PAGE).read_text() == page.page(Results([]))
    assert {path.stem for path in (tmp_path / page.PLOTS).iterdir()} == set(charts.TITLES)
