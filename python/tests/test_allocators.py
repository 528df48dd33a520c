"""Other allocators that a program preloads: it runs as it would, and what it holds is counted by theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

#: Names of the libraries, of the Debian packages that have them, and of what their statistics are told as.
ALLOCATORS = {
    "jemalloc": ("libjemalloc.so.2", "libjemalloc2"),
    "tcmalloc": ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    "mimalloc": ("libmimalloc.so.2", "libmimalloc2.0"),
}
EPOCHS = 8
BYTES = 8_000_000
PROGRAM = f"""
import caulk

kept = []
for epoch in range({EPOCHS}):
    kept.append(bytearray({BYTES}))
    passing = [bytearray(50_000) for _ in range(100 + epoch % 2)]
    del passing
    print(epoch)
    caulk.epoch()
"""


def library(name: str) -> Path | None:
    """Where the loader would find it."""
    folders = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")
    return next((path for folder in folders if (path := Path(folder) / name).is_file()), None)


@pytest.mark.parametrize("name", ALLOCATORS)
def test_growth_is_counted_by_the_allocator_that_the_program_preloads(run_caulk, name):
    file, package = ALLOCATORS[name]
    path = library(file)
    if path is None:
        pytest.skip(f"no {file}: Debian's {package} has it")
    run = run_caulk(PROGRAM, env={"LD_PRELOAD": str(path)})
    assert (run.code, run.stdout.split()) == (0, [str(epoch) for epoch in range(EPOCHS)]), run.told()
    verdict = run.verdict()
    assert verdict and verdict["state"] == "grows", run.told()
    assert 0.9 * BYTES < verdict["bytes_per_unit"] < 1.2 * BYTES, run.told()
