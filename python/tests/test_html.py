"""`caulk report --html`: one page that a real browser opens without a network, whatever names the program has."""

from __future__ import annotations

import os
import statistics
import subprocess
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser
from harness import CAULK, program_environment

AXE = os.environ.get("TEST_AXE")
ROUNDS = 5
MOST_BYTES = 400_000
MOST_MS = 1000

in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium: the page is not opened in a browser")

HOSTILE = "</script><img src=x onerror=window.hit=1>\\u202e"
FILE = "a'\"><svg onload=window.hit=1>&amp;.py"
PROGRAM = f"""\
import caulk

kept = {{"{HOSTILE}": []}}


def gather():
    kept["{HOSTILE}"].append(bytearray(6 << 20))  # <b>bold</b>


def main():
    for epoch in range(10):
        gather()
        caulk.epoch()


main()
"""


def write_page(run: Path, page: Path, *options: str) -> str:
    command = [str(CAULK), "report", str(run), "--html", str(page), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=program_environment())
    assert done.stdout == f"{page}\n"
    html = page.read_text()
    assert len(html.encode()) <= MOST_BYTES
    return html


@pytest.fixture
def recorded(run_caulk, tmp_path: Path) -> Path:
    program = tmp_path / FILE
    program.write_text(PROGRAM)
    return run_caulk(program, "--name=<script>window.hit=1</script>").folder / "run"


@pytest.fixture
def page(recorded, tmp_path: Path) -> Path:
    page = tmp_path / "page.html"
    write_page(recorded, page)
    return page


def test_names_are_text_and_the_file_is_replaced_at_once(recorded, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("old")
    html = write_page(recorded, page)
    assert "onerror=window.hit=1&gt;" in html
    assert "<img" not in html
    assert "bytearray(6" in html
    assert list(tmp_path.glob(".*")) == []


def test_a_page_without_source_has_none(recorded, tmp_path):
    html = write_page(recorded, tmp_path / "page.html", "--no-source")
    assert "bytearray(6" not in html
    assert "gather" in html


@in_browser
def test_hostile_names_do_nothing_in_a_browser(page, tmp_path):
    with Browser(tmp_path / "browser") as browser:
        times = []
        for _ in range(ROUNDS):
            browser.open(page)
            times.append(float(str(browser.value("performance.getEntriesByType('navigation')[0].loadEventEnd"))))
        assert statistics.median(times) < MOST_MS, times
        # Nothing of the program's has become markup, and nothing was loaded.
        assert browser.value("window.hit") is None
        assert browser.value("document.querySelectorAll('script, img, iframe, object, embed, link').length") == 1
        assert browser.value("document.querySelectorAll('b, [onload], [onerror]').length") == 0
        assert browser.value("performance.getEntriesByType('resource').length") == 0
        look_around(browser)
        assert browser.problems == []
        # The policy stops a script that is not the page's own.
        inline = "(() => { const s = document.createElement('script'); try { s.text = 'window.hit = 1'; } catch (e) {} "
        browser.value(inline + "document.body.append(s); })()")
        assert browser.value("window.hit") is None


@in_browser
@pytest.mark.skipif(AXE is None, reason="no axe-core: `cargo xtask test` downloads it")
def test_the_page_is_accessible(page, tmp_path):
    with Browser(tmp_path / "browser") as browser:
        browser.open(page)
        assert_accessible(browser)


def assert_accessible(browser: Browser) -> None:
    browser.value(Path(str(AXE)).read_text() + "; 1")
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.ask("Emulation.setEmulatedMedia", features=[feature])
        violations = "r.violations.flatMap((v) => v.nodes.map((n) => v.id + ': ' + n.html))"
        assert browser.value(f"axe.run().then((r) => {violations})") == [], scheme


@pytest.fixture
def small_pages(recorded, tmp_path: Path) -> list[Path]:
    """Pages of `verify` and `diff`."""
    pages = [tmp_path / "verify.html", tmp_path / "diff.html"]
    for words in (["verify", "--from", str(recorded)], ["diff", str(recorded), str(recorded)]):
        page = tmp_path / f"{words[0]}.html"
        command = [str(CAULK), *words, "--html", str(page)]
        subprocess.run(command, check=False, capture_output=True, env=program_environment())
    return pages


@in_browser
def test_smaller_pages_are_as_safe_and_as_accessible(small_pages, tmp_path):
    for page in small_pages:
        assert "<img" not in page.read_text()
        with Browser(tmp_path / f"browser-{page.stem}") as browser:
            browser.open(page)
            assert browser.value("window.hit") is None
            assert browser.value("document.querySelectorAll('script, img, iframe, object, embed, link').length") == 1
            assert browser.value("performance.getEntriesByType('resource').length") == 0
            browser.ask("Emulation.setDeviceMetricsOverride", width=320, height=600, deviceScaleFactor=1, mobile=False)
            assert browser.value("document.documentElement.scrollWidth <= 320"), page
            browser.ask("Emulation.clearDeviceMetricsOverride")
            assert browser.problems == []
            if AXE is not None:
                assert_accessible(browser)


def look_around(browser: Browser) -> None:
    """Does what a reader does: zooms, hides a curve, sorts, searches, opens frames."""
    browser.value("document.querySelector('[data-zoom=in]').click()")
    assert browser.value("document.querySelector('.zoomed').getAttribute('viewBox')") == "900 0 1800 1000"
    browser.value("document.querySelector('[data-zoom=whole]').click()")
    assert browser.value("document.querySelector('.zoomed').getAttribute('viewBox')") == "0 0 3600 1000"
    browser.value("document.querySelector('[data-toggle]').click()")
    assert browser.value("document.querySelectorAll('[data-curve].off').length") == 1
    browser.value("document.querySelector('#lines th button').click()")
    assert browser.value("document.querySelector('#lines th').getAttribute('aria-sort')") == "descending"
    seek = (
        "(() => {{ const i = document.querySelector('{0}'); i.value = '{1}'; i.dispatchEvent(new Event('input')); }})()"
    )
    browser.value(seek.format("[data-search=lines]", "no such line"))
    assert browser.value("document.querySelectorAll('#lines tbody tr:not([hidden])').length") == 0
    browser.value(seek.format("[data-flame=search]", "gather"))
    assert browser.value("document.querySelectorAll('.frame.hit').length") == 1
    browser.value("document.querySelector('.frame.hit').dispatchEvent(new MouseEvent('click'))")
    assert browser.value("document.querySelector('.frame.hit').getAttribute('width')") == "100%"
    # Narrower than the narrowest telephone, nothing sticks out.
    browser.ask("Emulation.setDeviceMetricsOverride", width=320, height=600, deviceScaleFactor=1, mobile=False)
    assert browser.value("document.documentElement.scrollWidth <= 320")
    browser.ask("Emulation.clearDeviceMetricsOverride")


def test_a_truncated_recording_gives_what_there_is(recorded, tmp_path):
    head = recorded / "run.json"
    head.write_text(head.read_text().replace('"complete": true', '"complete": false'))
    html = write_page(recorded, tmp_path / "page.html")
    assert 'class="banner"' in html
    assert "The recording is truncated" in html
    assert 'id="over-time"' in html
