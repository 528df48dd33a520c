"""Prints what calls of caulk cost, and fails where that is more than it may be."""

import subprocess
import sys
import time
from statistics import median


def microseconds(call, times=2000):
    call()
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return median(taken) * 1e6


def import_microseconds(statement):
    code = f"import time; began = time.perf_counter(); {statement}; print(time.perf_counter() - began)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True) for _ in range(15)]
    return median(float(run.stdout) for run in runs) * 1e6


without_torch = import_microseconds("import caulk"), 20_000

import caulk  # noqa: E402
import torch  # noqa: E402, F401

tracker = caulk.MemoryTracker("bench")
tracker.start()
rows = {
    "import caulk": without_torch,
    "get_memory_usage()": (microseconds(caulk.get_memory_usage), 50),
    "MemoryTracker.step()": (microseconds(tracker.step), 100),
}
for name, (taken, most) in rows.items():
    print(f"{name:24} {taken:10.1f} us   at most {most} us")
sys.exit(any(taken > most for taken, most in rows.values()))
