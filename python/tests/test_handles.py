"""Memory of which Python sees a handle alone, or a cycle that torch closes, is blamed on the line that keeps it."""

from __future__ import annotations

import pytest
from harness import PROGRAMS, Run, marked_line


@pytest.mark.parametrize("way", ["mapping", "private", "numbers", "stream"])
def test_what_keeps_handles_of_memory_is_named(run_caulk, way):
    program = PROGRAMS / "handles.py"
    run: Run = run_caulk(program, way)
    finding = run.alarm_at("handles.py", marked_line(program))
    assert finding is not None and finding["holder"] == "store.pieces", run.told()
    assert 3 << 20 < finding["growth"]["bytes_per_epoch"] < 6 << 20, run.told()


def test_an_attribute_of_ctx_that_closes_a_cycle_is_named(run_caulk):
    program = PROGRAMS / "context_output.py"
    run: Run = run_caulk(program)
    finding = run.alarm_at("context_output.py", marked_line(program))
    assert finding is not None and finding["class"] == "context-attribute-tensor", run.told()


def test_memory_that_native_code_maps_itself_is_growth_at_its_line(run_caulk):
    program = PROGRAMS / "mapped_directly.py"
    run: Run = run_caulk(program)
    assert run.report["outlook"]["state"] == "grows", run.told()
    finding = run.alarm_at("mapped_directly.py", marked_line(program))
    assert finding is not None and finding["class"] == "native-growth", run.told()
    assert 3 << 20 < finding["growth"]["bytes_per_epoch"] < 6 << 20, run.told()


@pytest.mark.parametrize("kept", ["all", "latest"])
def test_tables_with_memory_that_malloc_does_not_see_are_named(run_caulk, kept):
    pytest.importorskip("polars")
    program = PROGRAMS / "tables_kept.py"
    run: Run = run_caulk(program, kept)
    if kept == "latest":
        assert run.alarms == [] and run.report["outlook"]["state"] != "grows", run.told()
        return
    finding = run.alarm_at(program.name, marked_line(program))
    assert finding is not None and finding["holder"] == "results.tables", run.told()
    # Their allocator maps more, or touches what it has mapped before.
    assert finding["growth"]["series"] in ("rss", "in_use") and run.report["outlook"]["state"] == "grows", run.told()
    assert 2 << 20 < finding["growth"]["bytes_per_epoch"] < 8 << 20, run.told()
