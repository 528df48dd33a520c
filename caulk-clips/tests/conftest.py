"""Fixture: the worker that decodes videos."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from clipwork import WORKER


@pytest.fixture(scope="module")
def clip_worker() -> Iterator[Path]:
    """The worker beside the command, named to the Python package; skips if there is none."""
    if not WORKER.exists():
        pytest.skip("caulk-clips is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CAULK_CLIP", str(WORKER))
        yield WORKER
