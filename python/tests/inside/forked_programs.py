"""Imports torch once, then runs each program named on standard input in a process forked from this one."""

import atexit
import os
import sys
import traceback

import torch._dynamo  # noqa: F401 - every program with an optimizer loads it, which takes seconds

for line in sys.stdin:
    program, output = line.split()
    pid = os.fork()
    if not pid:
        break
    _, status = os.waitpid(pid, 0)
    print(pid, os.waitstatus_to_exitcode(status), flush=True)
else:
    os._exit(0)

# Outside the loop, which would be one of the program's else.
for name, descriptor in (("stdout", 1), ("stderr", 2)):
    os.dup2(os.open(f"{output}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
sys.argv[:] = [program]
with open(program, encoding="utf-8") as file:
    code = compile(file.read(), program, "exec")
status = 0
try:
    exec(code, {"__name__": "__main__", "__file__": program, "__builtins__": __builtins__})
except BaseException:
    traceback.print_exc()
    status = 1
# Taking torch apart would take a second more.
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(status)
