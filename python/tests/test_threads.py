"""Another thread may run whenever the agent calls something: what it lets go of then must not be touched."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
from harness import PROGRAMS, Run, marked_line

pytest.importorskip("caulk._agent", reason="caulk is not installed: cargo xtask develop")

#: A consumer that waits for the GIL all the time, and empties what grows as soon as it is let go inside a boundary.
PROGRAM = """
import collections, os, socket, sys, tempfile, threading, time

path = os.path.join(tempfile.mkdtemp(), "socket")
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen()
os.environ["CAULK_SOCKET"] = path
from caulk import _agent

assert _agent.start("", ["program"], None, None)
connection, _ = server.accept()
connection.setblocking(False)
# The GIL goes only to whom it is left.
sys.setswitchinterval(1000)
held = {kind: collections.deque() for kind in KINDS}
inside = False

class Item:
    def __init__(self):
        self.name = str(time.monotonic())
        self.values = [object() for _ in range(5)]

makers = {
    "tuple": lambda: (len(junk), bytearray(100), Item()),
    "dict": lambda: {"row": float(len(junk)), "item": Item()},
    "instance": Item,
    "tensor": lambda: (len(junk), torch.ones(10, requires_grad=True).square()),
}
if "tensor" in held:
    import torch
junk = []

def consume():
    while True:
        time.sleep(0)
        if inside:
            for each in held.values():
                each.clear()
            junk.append([(i, str(i)) for i in range(2000)])

threading.Thread(target=consume, daemon=True).start()
for epoch in range(8):
    for kind, each in held.items():
        while len(each) < 40 * (epoch + 1):
            each.append(makers[kind]())
    inside = True
    _agent.boundary(0, epoch, epoch, 1, 1)
    inside = False
    try:
        while connection.recv(1 << 20):
            pass
    except BlockingIOError:
        pass
os._exit(0)
"""


@pytest.mark.parametrize("kind", ["tuple", "dict", "instance", "tensor"])
def test_a_consumer_may_take_away_what_is_looked_at(kind):
    program = PROGRAM.replace("KINDS", repr([kind]))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_interpreters_beside_the_main_one_are_left_alone(run_caulk):
    program = PROGRAMS / "interpreters.py"
    alone = subprocess.run([sys.executable, program, "0.5"], capture_output=True, text=True, check=True)
    run: Run = run_caulk(program, "16", timeout=90)
    assert (run.code, set(run.stdout.splitlines())) == (0, set(alone.stdout.splitlines())), run.told()
    assert not run.notes_about("hook-failed"), run.told()
    assert run.alarm_at(program.name, marked_line(program)) is not None, run.told()
