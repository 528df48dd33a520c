"""What the documentation says is tested is tested."""

from __future__ import annotations

import re

import pages
import pytest
from harness import ROOT

TABLES = (ROOT / "docs" / "mission.md").read_text()
ROWS = [line.split("|")[1:-1] for line in TABLES.splitlines() if re.match(r"\| \d\.\d", line)]


@pytest.mark.parametrize("row", ROWS, ids=[row[0].strip() for row in ROWS])
def test_every_row_names_tests_that_are_there(row):
    told = row[3]
    tests = re.findall(r"`([\w/-]+\.(?:py|rs))(?:::(\w+))?`", told)
    pages = re.findall(r"page `([\w-]+)`", told) + [
        page
        for several in re.findall(r"pages ((?:`[\w-]+`(?:, )?)+)", told)
        for page in re.findall(r"`([\w-]+)`", several)
    ]
    assert tests or pages or told.strip() == "to come", told
    for file, test in tests:
        assert re.search(rf"\b(?:def|fn) {test}\b", (ROOT / file).read_text()), f"{file}::{test}"
    for page in pages:
        assert (ROOT / "crates/caulk_rules/src/rules" / f"{page.replace('-', '_')}.md").is_file(), page


def test_every_row_is_there():
    parts = {"0": 7, "1": 9, "2": 6, "3": 11, "4": 12}
    assert [row[0].strip() for row in ROWS] == [
        f"{part}.{n}" for part, count in parts.items() for n in range(1, count + 1)
    ]


PAGES = pages.pages()
RUN = [page for page in PAGES if any(block.is_run and not block.is_full for block in pages.blocks(page))]
RUN_IN_FULL = [page for page in PAGES if any(block.is_run and block.is_full for block in pages.blocks(page))]


def of_page(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=of_page)
def test_every_command_is_run_or_has_a_reason(page):
    for block in pages.blocks(page):
        if block.is_command:
            assert block.is_run or block.mark.startswith("not run: "), f"{block}: no mark above the block"
        if block.is_run:
            assert block.commands(), f"{block}: nothing to run"
        if block.language == "python":
            compile(block.text, str(block), "exec")


@pytest.mark.parametrize("page", RUN, ids=of_page)
def test_commands_do_what_their_page_shows(page, tmp_path):
    pages.run(page, tmp_path, full=False)


@pytest.mark.full
@pytest.mark.parametrize("page", RUN_IN_FULL, ids=of_page)
def test_long_commands_do_what_their_page_shows(page, tmp_path):
    pages.run(page, tmp_path, full=True)


def test_a_line_that_is_not_printed_is_found():
    assert pages.absent(["a 12 MB", "...", "c"], "a 7.5 MB\nb\nc\n") is None
    assert pages.absent(["c", "a 1"], "a 1\nc\n") == "a 1"


LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


@pytest.mark.parametrize("page", [page for page in PAGES if "docs" not in page.parts], ids=of_page)
def test_links_of_the_tree_lead_somewhere(page):
    """Those of `docs` are checked when the site is built."""
    for link in LINK.findall(page.read_text()):
        assert (page.parent / link).exists(), link
