"""No folder can be written, or the working directory is gone: the program runs, and the leak is named all the same."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from harness import CAULK, marked_line, program_environment

PROGRAM = """\
import caulk

kept = []
for epoch in range(8):
    kept.append(bytearray(8_000_000))  # leak
    caulk.epoch()
print("ran")
raise SystemExit(5)
"""

#: Only `/mnt` can be written, where the program and the socket are.
MOUNTS = """
mount -t tmpfs none /mnt || exit 77
mkdir /mnt/work /mnt/home /mnt/socket
cat > /mnt/program.py
for folder in /tmp /var/tmp /mnt/work /mnt/home; do mount -t tmpfs -o ro none $folder; done
export HOME=/mnt/home XDG_RUNTIME_DIR=/mnt/socket
"""


@pytest.mark.parametrize("place", ["cd /mnt/work", "mkdir /mnt/gone; cd /mnt/gone; rmdir /mnt/gone"])
def test_a_leak_is_named_without_a_recording(place: str, tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    run = shlex.join([str(CAULK), "run", "--", sys.executable, "/mnt/program.py"])
    shell = ["unshare", "-U", "-r", "-m", "sh", "-c", f"{MOUNTS}{place}; exec {run}"]
    ended = subprocess.run(
        shell, input=PROGRAM, env=program_environment(), capture_output=True, text=True, timeout=120, check=False
    )
    if ended.returncode == 77 or ended.stderr.startswith("unshare:"):
        pytest.skip(f"no mount namespace here: {ended.stderr}")
    assert (ended.returncode, ended.stdout) == (5, "ran\n"), ended.stderr
    assert ended.stderr.count("warning: this run is watched without a recording") == 1, ended.stderr
    assert "Memory grows by" in ended.stderr, ended.stderr
    line = marked_line(program)
    assert f"program.py:{line}" in ended.stderr, ended.stderr
    assert "recording: " not in ended.stderr, ended.stderr
