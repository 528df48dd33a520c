"""Programs that a Python starts inherit what was preloaded into it: each runs as it would without."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HELLO = """
#include <stdio.h>
#include <stdlib.h>
int main(void) { char *block = malloc(5000000); puts(block ? "hello" : "none"); free(block); return 7; }
"""

PARENT = """
import subprocess, sys
done = subprocess.run([sys.argv[1]], capture_output=True, text=True)
print(done.returncode, repr(done.stdout), repr(done.stderr))
"""


@pytest.mark.parametrize(
    ("compiler", "options"),
    [("cc", ["-fsanitize=address"]), ("cc", ["-static"]), ("musl-gcc", []), ("musl-gcc", ["-static"])],
    ids=["address-sanitizer", "static", "musl", "static-musl"],
)
def test_a_child_of_another_kind_runs_as_it_would(run_caulk, tmp_path: Path, compiler, options):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}: Debian's gcc, musl-tools")
    source, program = tmp_path / "hello.c", tmp_path / "hello"
    source.write_text(HELLO)
    built = subprocess.run([compiler, *options, "-o", program, source], capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip(f"{compiler} cannot build it: {built.stderr}")
    run = run_caulk(PARENT, str(program))
    assert (run.code, run.stdout) == (0, "7 'hello\\n' ''\n"), run.told()


def test_a_package_in_a_folder_with_spaces_and_colons_is_loaded_from_elsewhere(run_caulk, tmp_path: Path):
    import caulk

    package = tmp_path / "a b:c" / "caulk"
    shutil.copytree(Path(caulk.__file__).parent, package)
    program = 'import subprocess\nprint("caulk_preload" in open("/proc/self/maps").read(), flush=True)\n'
    program += 'subprocess.run(["sh", "-c", "echo child"])\n'
    run = run_caulk(program, env={"CAULK_PACKAGE": str(package)})
    assert (run.code, run.stdout.split()) == (0, ["True", "child"]), run.told()


EPOCHS = "import caulk\nfor epoch in range(3):\n    caulk.epoch()\n"

LEFT_OUT = f"""
import os, subprocess, sys
environment = {{**os.environ, "LD_PRELOAD": "/nowhere/libcaulk_preload.so"}}
subprocess.run([sys.executable, "-c", {EPOCHS!r}], env=environment, stderr=subprocess.DEVNULL)
"""


def test_a_sampler_that_the_loader_left_out_is_told(run_caulk):
    run = run_caulk(LEFT_OUT)
    assert run.notes_about("heap-not-loaded"), run.told()
    assert not run_caulk(EPOCHS).notes_about("heap-not-loaded")


@pytest.mark.parametrize(("allocator", "told"), [("debug", True), ("malloc", False), ("malloc_debug", False)])
def test_small_objects_that_are_not_seen_are_told(run_caulk, allocator, told):
    run = run_caulk(EPOCHS, env={"PYTHONMALLOC": allocator})
    assert bool(run.notes_about("heap-without-small-objects")) == told, run.told()


def test_the_sampler_needs_the_c_library_alone():
    import caulk

    library = Path(caulk.__file__).with_name("libcaulk_preload.so")
    if shutil.which("readelf") is None:
        pytest.skip("no readelf: Debian's binutils")
    told = subprocess.run(["readelf", "--dynamic", library], capture_output=True, text=True, check=True).stdout
    needed = [line.split("[")[1].rstrip("]") for line in told.splitlines() if "(NEEDED)" in line]
    assert len(needed) == 1 and needed[0].startswith("libc.so"), needed


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a file to somebody else")
def test_a_program_with_rights_of_its_own_runs_as_it_would_and_is_told(run_caulk):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        program, elsewhere = folder / "python3", folder / "elsewhere.py"
        shutil.copy(Path(sys._base_executable).resolve(), program)
        shutil.chown(program, "nobody")
        program.chmod(0o4755)
        elsewhere.write_text(
            "import os, sys, time\nprint(os.getuid(), os.geteuid(), 'caulk' in sys.modules)\ntime.sleep(6)\n"
        )
        alone = subprocess.run([program, elsewhere], capture_output=True, text=True, check=False)
        if alone.stdout.split()[:2] != ["0", str(pwd.getpwnam("nobody").pw_uid)]:
            pytest.skip(f"no rights of its own here: {alone.stdout}{alone.stderr}")
        run = run_caulk([program, elsewhere])
    assert (run.code, run.stdout) == (alone.returncode, alone.stdout), run.told()
    assert any("setuid" in note for note in run.notes_about("no-agent")), run.told()
