"""What bytes in use cost to know: readings kept at boundaries, CPU time and memory, on heaps of many free blocks and arenas.

`readings.py CAULK WITH WITHOUT [--epochs N] [--rounds N] [--most BLOCKS]`: the command, and the sampler built with and
without its sums.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

# Blocks of many sizes, of which every second one is free: malloc keeps these in lists, and looks through them when asked.
FILL = """
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
static long each;
static pthread_barrier_t filled;
static void *fill(void *last) {
    void **blocks = malloc(sizeof *blocks * 2 * each);
    for (long i = 0; i < 2 * each; i++) blocks[i] = malloc(40 + 16 * (i / 2 % 5));
    for (long i = 0; i < 2 * each; i += 2) free(blocks[i]);
    free(blocks);
    pthread_barrier_wait(&filled);
    if (!last) for (;;) pthread_barrier_wait(&filled);
    return last;
}
void prepare(long blocks, int arenas) {
    mallopt(M_ARENA_MAX, arenas);
    each = blocks / arenas;
    pthread_barrier_init(&filled, NULL, arenas);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_t thread;
    for (int i = 1; i < arenas; i++) pthread_create(&thread, &small, fill, NULL);
    fill(&each);
}
"""

PROGRAM = """
import ctypes, sys
filler, blocks, arenas, epochs = sys.argv[1], *map(int, sys.argv[2:])
ctypes.CDLL(filler).prepare(ctypes.c_long(blocks), arenas)
import caulk
kept = []
for epoch in range(epochs):
    for step in range(20):
        sum(range(200_000))
        caulk.step()
    kept.append(bytearray(1_000_000))
    caulk.epoch()
"""

PAIRS = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
void *PyGILState_GetThisThreadState(void) { return NULL; }
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}
int main(void) {
    double best = 1e9;
    for (int round = 0; round < 10; round++) {
        double began = now();
        for (int i = 0; i < 3000000; i++) {
            void *volatile block = malloc(64);
            free(block);
        }
        double each = (now() - began) / 3000000;
        if (each < best) best = each;
    }
    printf("%f\\n", best);
}
"""

# As `caulk_wire::heap` has it: 64 slots of 8 MiB and a page.
MEMORY_BYTES = 64 * (8 << 20) + 4096


def build(folder: Path, name: str, text: str, *options: str) -> Path:
    source = folder / f"{name}.c"
    source.write_text(text)
    built = folder / name
    subprocess.run(["cc", "-O2", "-fno-builtin", "-pthread", *options, "-o", built, source], check=True)
    return built


def pair_nanoseconds(program: Path, library: str) -> float:
    memory = os.memfd_create("heap")
    os.ftruncate(memory, MEMORY_BYTES)
    path = f"/proc/{os.getpid()}/fd/{memory}"
    done = subprocess.run(
        [program], env={**os.environ, "LD_PRELOAD": library, "CAULK_HEAP": path}, capture_output=True, check=True
    )
    os.close(memory)
    return float(done.stdout)


def pairs(folder: Path, libraries: dict[str, str], rounds: int) -> None:
    """One after the other, round by round: another program's load falls on all of them."""
    program = build(folder, "pairs", PAIRS, "-rdynamic")
    taken: dict[str, list[float]] = {name: [] for name in libraries}
    for _ in range(rounds):
        for name, library in libraries.items():
            taken[name].append(pair_nanoseconds(program, library))
    print(f"a pair of malloc and free, in nanoseconds, medians of {rounds} rounds")
    for name, times in taken.items():
        print(f"  {name:24} {median(times):6.2f}")
    more = median(a - b for a, b in zip(taken["with sums"], taken["without sums"], strict=True))
    print(f"  {'the sums':24} {more:+6.2f}\n")


def children() -> tuple[float, float]:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def run(folder: Path, command: list[str]) -> float:
    """CPU seconds."""
    before, _ = children()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return children()[0] - before


def looks(folder: Path, caulk: str, program: list[str], *options: str) -> tuple[float, dict]:
    report = folder / "report.json"
    line = [caulk, "run", "--output", str(folder / "run"), "--report-json", str(report), *options, "--"]
    taken = run(folder, [*line, *program])
    subprocess.run(["rm", "-rf", folder / "run"], check=True)
    return taken, json.loads(report.read_text())


def readings(folder: Path, caulk: str, most: int, epochs: int) -> None:
    filler = build(folder, "filler.so", FILL, "-shared", "-fPIC")
    (folder / "program.py").write_text(PROGRAM)
    print(
        "epochs told, CPU time in the program (s) and in all beyond the plain program (s), longest pause (ms), RSS (MB)"
    )
    print(
        f"{'blocks':>10} {'arenas':>6}  {'who counts':12} {'told':>8} {'in it':>6} {'more':>6} {'pause':>6} {'RSS':>6}"
    )
    for blocks in (size for size in (10**5, 10**6, 10**7) if size <= most):
        for arenas in (1, 8, 64):
            words = [sys.executable, str(folder / "program.py"), str(filler), str(blocks), str(arenas), str(epochs)]
            plain = run(folder, words)
            for who, options in (("sums", ()), ("mallinfo2", ("--no-heap",))):
                taken, report = looks(folder, caulk, words, *options)
                known = {v["series"]: v["boundaries"] for v in report["verdicts"] if v["process"]["role"] == "main"}
                summary = report["summary"]
                told = f"{known.get('in_use', 0)} of {known.get('rss', 0)}"
                pause = (summary["longest_pause_s"] or 0) * 1e3
                peak = (summary["peak_bytes"] or 0) / 1e6
                spent = summary["cost_s"] or 0
                print(
                    f"{blocks:10} {arenas:6}  {who:12} {told:>8} {spent:6.2f} {taken - plain:+6.2f} {pause:6.0f} {peak:6.0f}",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("caulk")
    parser.add_argument("with_sums")
    parser.add_argument("without_sums")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--most", type=int, default=10**7)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        libraries = {"nobody": "", "without sums": args.without_sums, "with sums": args.with_sums}
        pairs(folder, libraries, args.rounds)
        readings(folder, args.caulk, args.most, args.epochs)


main()
