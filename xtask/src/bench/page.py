"""Opens pages in a headless Chromium on two cores, five times each, and prints when they were loaded."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python/tests"))
from browser import Browser

ROUNDS = 5
MOST_MS = 1000


def loaded(page: Path) -> float:
    """Milliseconds until the page is loaded."""
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder)) as browser:
        browser.open(page)
        return float(str(browser.value("performance.getEntriesByType('navigation')[0].loadEventEnd")))


os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
is_slow = False
for page in map(Path, sys.argv[1:]):
    times = sorted(loaded(page) for _ in range(ROUNDS))
    median = statistics.median(times)
    listed = ", ".join(f"{time:.0f}" for time in times)
    print(f"{page.name}: loaded after {median:.0f} ms, median of {listed}")
    is_slow |= median >= MOST_MS
sys.exit(is_slow)
