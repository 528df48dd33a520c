"""What keeps memory in real programs: objects of libraries, large tables of data, and what is there when memory runs out."""

from __future__ import annotations

from pathlib import Path

from harness import PROGRAMS, marked_line


def test_what_a_library_s_object_keeps_under_a_key_is_traced_to_both_lines(run_caulk):
    program = PROGRAMS / "settings_kept.py"
    run = run_caulk(program)
    finding = run.alarms[0]
    caller, library = finding["sites"]
    assert (Path(caller["file"]).name, caller["line"]) == (program.name, marked_line(program)), run.told()
    assert Path(library["file"]).name == "configparser.py", run.told()
    assert "_sections" in finding["holder"] and finding["confidence"] == "proved", run.told()


def test_what_grows_beside_a_million_objects_of_data_is_found_and_traced(run_caulk):
    program = PROGRAMS / "table_in_memory.py"
    run = run_caulk(program)
    finding = run.alarms[0]
    assert finding["sites"][0]["line"] == marked_line(program), run.told()
    assert finding["confidence"] == "proved" and finding["holder"].endswith(".pages"), run.told()
    assert len(run.alarms) == 1, run.told()
    assert not run.notes_about("census-too-long"), run.told()
    clean = run_caulk(program, "--clean")
    assert clean.alarms == [], clean.told()


def test_the_line_at_which_memory_runs_out_is_named_after_seconds(run_caulk):
    program = PROGRAMS / "memory_runs_out.py"
    run = run_caulk(program)
    assert run.code == 1 and "MemoryError" in run.stderr
    ending = run.report["run"]["ending"]
    limit = {"kind": "rlimit_as", "bytes": 700 << 20}
    assert ending == {"kind": "memory-error", "type": "MemoryError", "limit": limit}, run.told()
    finding = run.alarms[0]
    assert finding["sites"][0]["line"] == marked_line(program) and finding["container"] == "kept", run.told()
    assert "memory ran out" in finding["message"], run.told()
