"""What suspended functions are about to use is theirs only where nobody else has it."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("caulk._agent", reason="caulk is not installed: cargo xtask develop")

#: From 3.14 on a suspended function's stack refers to `table` a second time, and does not count it.
PROGRAM = """
from caulk import _agent

def consume(table, value):
    return value

def wait(table):
    consume(table, (yield))

async def wait_for(table, task):
    return [table, await task]

class Never:
    def __await__(self):
        yield

shared = [[number] for number in range(500)]
waiting = []

def main():
    before = _agent.Lengths()
    for _ in range(15):
        waiting.append(BEGIN)
        waiting[-1].send(None)
    [each] = [each for _, _, _, each, _, name in before.grown() if name == "waiting"]
    print(each)
    for task in waiting:
        task.close()

main()
"""


@pytest.mark.parametrize("begin", ["wait(shared)", "wait_for(shared, Never())"])
def test_what_suspended_functions_share_is_not_theirs(tmp_path, begin):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace("BEGIN", begin))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    # A coroutine is two thousand bytes at most; the table that they share is five thousand for each that is looked at.
    assert 50 < int(done.stdout) < 4000
