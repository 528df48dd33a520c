"""What the documentation says is tested is tested."""

from __future__ import annotations

import re

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
