"""`caulk report --flame`: a page that works in a browser without a network, drawn from the heap of a real run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser
from harness import CAULK, program_environment

PROGRAM = """\
import caulk


def load_model():
    return bytearray(120 << 20)


def gather(kept):
    kept.append(bytearray(8 << 20))


def main():
    model, kept = load_model(), []
    for epoch in range(10):
        gather(kept)
        caulk.epoch()


main()
"""


@pytest.fixture
def page(run_caulk, tmp_path: Path) -> Path:
    folder = run_caulk(PROGRAM).folder
    page = tmp_path / "heap.html"
    command = [str(CAULK), "report", str(folder / "run"), "--flame", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=program_environment())
    assert done.stdout == f"{page}\n"
    return page


def frames(html: str) -> dict[str, dict[str, float]]:
    """Left edge and width in percent, live and growing bytes, by the name of a frame."""
    found = re.findall(
        r'<svg class="frame \w+" x="([\d.]+)%" .*?width="([\d.]+)%".*? data-live="(\d+)" data-growth="(\d+)"'
        r'.*?<text x="4" y="14">(\S+).*?</text></svg>',
        html,
    )
    keys = ("x", "width", "live", "growth")
    return {name: dict(zip(keys, map(float, values), strict=True)) for *values, name in found}


def test_frames_are_as_wide_as_what_they_hold(page):
    drawn = frames(page.read_text())
    model, gathered = drawn["load_model"], drawn["gather"]
    # Blocks of 16 times the sampling interval and more are counted exactly: one in nine million is missed.
    assert model["live"] == pytest.approx(120 << 20, rel=0.01)
    assert gathered["live"] == pytest.approx(80 << 20, rel=0.01)
    assert gathered["growth"] == pytest.approx(8 << 20, rel=0.01)
    assert model["growth"] == 0
    assert model["width"] / gathered["width"] == pytest.approx(1.5, rel=0.02)


def frame(name: str) -> str:
    return f"[...document.querySelectorAll('.frame')].find((f) => f.textContent.includes({name!r} + ' program.py'))"


def width(browser: Browser, name: str) -> float:
    value = browser.value(f"{frame(name)}.getBoundingClientRect().width")
    assert isinstance(value, int | float)
    return value


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium: the flame graph was not looked at in a browser")
def test_a_person_can_turn_to_growth_go_into_a_frame_and_search(page, tmp_path):
    with Browser(tmp_path / "browser") as browser:
        browser.open(page)
        whole = browser.value("document.getElementById('graph').getBoundingClientRect().width")
        assert isinstance(whole, int | float)
        live = width(browser, "load_model")
        assert 0.5 * whole < live < whole
        assert width(browser, "load_model") > width(browser, "gather") > 0

        browser.click("document.getElementById('growth')")
        assert width(browser, "gather") > 0.9 * whole
        assert browser.value(f"{frame('load_model')}.style.display") == "none"
        assert browser.value("document.getElementById('growth').getAttribute('aria-pressed')") == "true"

        browser.click("document.getElementById('live')")
        assert width(browser, "load_model") == pytest.approx(live, abs=1)
        browser.click(frame("load_model"))
        assert width(browser, "load_model") == pytest.approx(whole, abs=1)
        assert "load_model: 120 MB" in str(browser.value("document.getElementById('detail').textContent")).replace(
            "program.py:5 in ", ""
        )
        assert browser.value(f"{frame('gather')}.style.display") == "none"
        browser.click("document.getElementById('whole')")
        assert width(browser, "gather") > 0

        browser.click("document.getElementById('search')")
        browser.type("gather")
        hits = browser.value("document.querySelectorAll('.frame.hit').length")
        assert hits == 1
        found = str(browser.value("document.getElementById('found').textContent"))
        assert 30 < float(found.split()[0]) < 45, found
        assert browser.value("performance.getEntriesByType('resource').length") == 0
        assert browser.problems == []
