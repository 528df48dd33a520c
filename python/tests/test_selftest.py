"""`caulk selftest` with the interpreter of these tests."""

from __future__ import annotations

import json
import subprocess
import sys

from harness import CAULK, program_environment


def test_everything_works_here_and_recordings_are_kept(tmp_path):
    command = [str(CAULK), "selftest", "--python", sys.executable, "--format", "json", "--output", str(tmp_path)]
    ended = subprocess.run(command, env=program_environment(), capture_output=True, text=True, timeout=600)
    answer = json.loads(ended.stdout)
    states = {check["name"]: check["state"] for check in answer["checks"]}
    assert ended.returncode == 0 and answer["works"], (states, ended.stdout, ended.stderr)
    wanted = ["agent", "torch-hooks", "trace", "trace-and-heap", "heap-sampler", "clean", "clean-and-heap"]
    assert [states[name] for name in wanted] == ["good"] * len(wanted)
    assert {folder.name for folder in tmp_path.iterdir() if folder.is_dir()} >= {"leak", "clean-no-heap"}
