"""The interpreter's own tests pass under caulk as they do without."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from harness import program_environment

pytestmark = pytest.mark.full

MODULES = (
    "test_ctypes",
    "test_faulthandler",
    "test_fork1",
    "test_gc",
    "test_multiprocessing_fork",
    "test_subprocess",
    "test_sys_setprofile",
    "test_threading",
)
#: Asks for all descriptors of a Python that it starts: under caulk there is one more, its connection, above 500.
EXCEPT = ("-i", "test_pass_fds_redirected")
#: What a test that did not pass has in its record.
NO_PASS = ("failure", "error", "skipped")
#: Seconds for one module; one that hangs is a failure.
PATIENCE = 900


def interpreters() -> list[str]:
    """Those that `CAULK_TEST_PYTHONS` names (with `:` between), else the one that runs this and those on the path."""
    named = os.environ.get("CAULK_TEST_PYTHONS")
    if named:
        return named.split(":")
    found = [getattr(sys, "_base_executable", sys.executable)]
    found += filter(None, (shutil.which(f"python3.{minor}") for minor in range(10, 15)))
    return list({os.path.realpath(python): python for python in found}.values())


def ships(python: str, module: str) -> bool:
    """Debian leaves the tests to a package of their own."""
    probe = f"import importlib.util as u, sys; sys.exit(u.find_spec('test') is None or u.find_spec('test.{module}') is None)"
    return subprocess.run([python, "-c", probe], capture_output=True, check=False).returncode == 0


def outcomes(told: Path) -> dict[str, str]:
    """Of each test what became of it, as the interpreter's runner tells it in the format of JUnit."""
    if not told.is_file():
        return {}
    cases = ElementTree.parse(told).iter("testcase")
    return {case.get("name", ""): next((part.tag for part in case if part.tag in NO_PASS), "passed") for case in cases}


@pytest.mark.parametrize("python", interpreters(), ids=lambda python: Path(python).resolve().name)
@pytest.mark.parametrize("module", MODULES)
def test_modules_pass_as_without(run_caulk, tmp_path, python, module):
    if not ships(python, module):
        pytest.skip(f"{python} does not ship test.{module}")
    plain, under = tmp_path / "plain.xml", tmp_path / "caulk.xml"
    command = [python, "-m", "test", *EXCEPT, "--junit-xml"]
    try:
        done = subprocess.run(
            [*command, plain, module],
            cwd=tmp_path,
            env=program_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{module} does not end without caulk")
    expected = outcomes(plain)
    if not expected:
        pytest.skip(f"{module} does not run without caulk")
    run = run_caulk([*command, str(under), module], timeout=PATIENCE)
    assert (run.code, outcomes(under)) == (done.returncode, expected), run.told()
