"""What `gc.freeze()` has taken out of the collector's sight is looked at all the same."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("caulk._agent", reason="caulk is not installed: cargo xtask develop")

#: The child of a fork walks another way than its parent.
PROGRAM = """
import gc, os
from caulk import _agent

frozen = [[number] for number in range(20_000)]
kept = []
gc.freeze()
fresh = [[number] for number in range(1_000)]

def main():
    before = _agent.Lengths()
    counted, expected = _agent.take_census()[0], len(gc.get_objects()) + gc.get_freeze_count()
    assert abs(counted - expected) <= expected / 100, (counted, expected)
    kept.extend([] for _ in range(50))
    assert "kept" in [name for *_, name in before.grown()], "what is frozen may grow"

main()
child = os.fork()
if child == 0:
    _agent.after_fork()
    main()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


def test_frozen_objects_are_walked(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
