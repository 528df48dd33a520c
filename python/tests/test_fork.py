"""A forked child begins at once: nothing of the parent's is waited for."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("caulk._agent", reason="caulk is not installed: cargo xtask develop")

#: Waiting shows as voluntary context switches, one for every millisecond.
PROGRAM = """
import os, sys
from caulk import _agent

class Keeper:
    def __init__(self):
        self.items = []

    def grow(self):
        self.items.append(1)

keeper = Keeper()
if ARMED:
    _agent.trace_arm([(1, "object", keeper.items, "", "items", "")])
pid = os.fork()
if pid:
    _, status = os.waitpid(pid, 0)
    sys.exit(os.waitstatus_to_exitcode(status))
before = int(open("/proc/thread-self/status").read().split("\\nvoluntary_ctxt_switches:")[1].split()[0])
_agent.after_fork()
after = int(open("/proc/thread-self/status").read().split("\\nvoluntary_ctxt_switches:")[1].split()[0])
keeper.grow()
os._exit(0 if after - before < 100 else 1)
"""


@pytest.mark.parametrize("armed", [False, True])
def test_the_child_of_a_fork_does_not_wait(armed):
    program = textwrap.dedent(PROGRAM.replace("ARMED", repr(armed)))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
