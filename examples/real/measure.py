"""Measures what the trainings of this folder leak, from outside: truth.toml holds what it found.

Each program runs clean and with each of its leaks, in the short settings of truth.toml. At every epoch that it prints, the
C library is asked how many bytes are in use (`mallinfo2`); Python's own small objects go there, too (`PYTHONMALLOC=malloc`),
and what waits for the collector does not count where a program leaves that on.
What a leak comes to is its slope over the epochs less that of the clean run.
"""

import argparse
import ctypes
import gc
import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
TRUTH = HERE / "truth.toml"
EPOCH = re.compile(r"(epoch|shard|repeat) (\d+):")
# What is set up in the first epochs is no leak.
SETTLING = 3
CLEAN = "clean"


class Mallinfo(ctypes.Structure):
    names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_ = [(name, ctypes.c_size_t) for name in names]


class Watched:
    """Standard output that takes a reading whenever an epoch is printed."""

    def __init__(self, stream):
        self.stream = stream
        self.readings = []
        library = ctypes.CDLL(None)
        self.ask = library.mallinfo2
        self.ask.restype = Mallinfo

    def write(self, text):
        if EPOCH.match(text):
            if gc.isenabled():
                gc.collect()
            info = self.ask()
            self.readings.append(info.uordblks + info.hblkhd)
        return self.stream.write(text)

    def __getattr__(self, name):
        return getattr(self.stream, name)


def watch(output, program, arguments):
    """Runs a program in this process and writes the readings to a file."""
    sys.argv = [program.__file__, *arguments]
    sys.stdout = watched = Watched(sys.stdout)
    program.main()
    Path(output).write_text(json.dumps(watched.readings))


def watch_all(folder, name, arguments, leaks):
    """Runs a program clean and with leaks, each in a process that has imported it before: that takes most of the time."""
    sys.path.insert(0, str(HERE))
    program = importlib.import_module(name)
    for leak in leaks:
        switch = [] if leak == CLEAN else ["--leak", leak]
        child = os.fork()
        if child == 0:
            watch(Path(folder) / leak, program, [*arguments, *switch])
            sys.stdout.flush()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, f"{name} failed with {switch}"


def readings(program, arguments, leaks):
    """Bytes in use at each epoch, of a clean run and of one with each leak."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--watch", folder, program, json.dumps(arguments), json.dumps(leaks)]
        subprocess.run(
            command,
            env={**os.environ, "PYTHONMALLOC": "malloc", "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return {leak: json.loads((Path(folder) / leak).read_text()) for leak in leaks}


def slope(values):
    """Bytes per epoch: the median slope between any two epochs once things have settled."""
    points = list(enumerate(values))[SETTLING:]
    pairs = [(later - sooner) / (b - a) for a, sooner in points for b, later in points if b > a]
    return round(statistics.median(pairs))


def record(header, key, value):
    """Puts a figure into truth.toml, below the header of its table."""
    text = TRUTH.read_text()
    start = text.index(f"[{header}]\n")
    end = text.find("\n[", start)
    table = text[start : len(text) if end < 0 else end]
    changed, count = re.subn(rf"^{key} = .*$", f"{key} = {value}", table, flags=re.MULTILINE)
    assert count == 1, f"{header} has {count} lines for {key}"
    TRUTH.write_text(text.replace(table, changed))


def measure(program, truth, only, keep, epochs):
    leaks = [leak for leak in truth["leaks"] if only in ("", leak)]
    # The last of two equal switches counts.
    arguments = [*truth["short"], *(["--epochs", str(epochs)] if epochs else [])]
    runs = readings(program, arguments, [CLEAN, *leaks])
    clean = slope(runs[CLEAN])
    print(f"{program}: {clean:+,} B per epoch, {runs[CLEAN][-1] / 1e6:.0f} MB in use", flush=True)
    if keep:
        record(program, "clean_bytes_per_epoch", clean)
    for leak in leaks:
        found = slope(runs[leak]) - clean
        print(f"{program}:{leak}: {found:+,} B per epoch", flush=True)
        if keep:
            record(f"{program}.leaks.{leak}", "bytes_per_epoch", found)


def main():
    if sys.argv[1:2] == ["--watch"]:
        return watch_all(sys.argv[2], sys.argv[3], json.loads(sys.argv[4]), json.loads(sys.argv[5]))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="PROGRAM[:LEAK]")
    parser.add_argument("--record", action="store_true", help="write what is measured to truth.toml")
    parser.add_argument("--epochs", type=int, help="other than in truth.toml; at least 6")
    options = parser.parse_args()
    truths = tomllib.loads(TRUTH.read_text())
    wanted = [name.partition(":") for name in options.only] or [(name, "", "") for name in truths]
    for program, _, leak in wanted:
        measure(program, truths[program], leak, options.record, options.epochs)


if __name__ == "__main__":
    main()
