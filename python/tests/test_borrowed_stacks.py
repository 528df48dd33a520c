"""What torch's own threads allocate belongs to the backward pass that they work for."""

from __future__ import annotations

import json
import subprocess

from harness import CAULK, PROGRAMS, marked_line

EPOCHS = 6
#: One gradient is kept of each pass at the deepest level.
GRADIENT = 1000 * 500 * 4


def test_threads_of_the_engine_borrow_the_stack_of_the_pass_that_runs(run_caulk):
    program = PROGRAMS / "reentrant.py"
    run = run_caulk(program, str(EPOCHS))
    assert run.code == 0, run.told()
    told = subprocess.run(
        [CAULK, "report", run.folder / "run", f"--lines={program}", "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = {line["line"]: line for line in json.loads(told.stdout)["lines"]}
    # The last boundary is at the beginning of the last epoch.
    for mark, passes in (("# first", 1), ("# second", 3)):
        line = lines[marked_line(program, mark)]
        exact = (EPOCHS - 1) * passes * GRADIENT
        live = line["live"]
        assert abs(live["bytes"] - exact) < 3 * live["deviation"] + 0.2 * exact, (mark, line)
