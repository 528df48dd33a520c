"""`caulk run --metrics`: read by the parser of the Prometheus client library while a real program runs."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from harness import CAULK, program_environment

parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="no Prometheus client library")

PROGRAM = """\
import sys

import caulk

kept = []
for epoch in range(5):
    kept.append(b"x" * (4 << 20))
    caulk.step()
    caulk.epoch()
    print("epoch", flush=True)
sys.stdin.readline()
"""
DEADLINE_S = 60


def read(address: str) -> dict[str, list]:
    """Samples by name, read strictly: types, units, escapes, the end."""
    with urllib.request.urlopen(address, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
        text = answer.read().decode()
    samples: dict[str, list] = {}
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append(sample)
    return samples


def test_a_running_program_has_memory_epochs_and_limits(tmp_path: Path):
    program = tmp_path / 'a "b".py'
    program.write_text(PROGRAM)
    command = [str(CAULK), "run", "--output", "run", "--metrics", "127.0.0.1:0", "--budget", "50GB"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, "--", sys.executable, str(program)],
        cwd=tmp_path,
        env=program_environment(),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
    ) as running:
        assert running.stdin is not None and running.stderr is not None
        first = running.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/metrics", first)
        assert found, first
        until = time.monotonic() + DEADLINE_S
        while True:
            samples = read(found[0])
            epochs = samples.get("caulk_epochs_total", [])
            memory = {one.labels["process_pid"]: one.value for one in samples.get("process_memory_usage_bytes", [])}
            # Epochs come at once, memory with the next sample.
            if epochs and epochs[0].value == 5 and memory.get(epochs[0].labels["process_pid"], 0) > 20 << 20:
                break
            assert time.monotonic() < until, samples
            time.sleep(0.1)
        pid = epochs[0].labels["process_pid"]
        assert samples["caulk_tree_memory_usage_bytes"][0].value >= memory[pid]
        in_use = {sample.labels["process_pid"]: sample.value for sample in samples["caulk_memory_in_use_bytes"]}
        assert in_use[pid] > 20 << 20
        assert samples["caulk_steps_total"][0].value == 5
        limits = {sample.labels["caulk_limit"]: sample.value for sample in samples["caulk_memory_limit_bytes"]}
        assert limits["budget"] == 50 << 30 and limits["physical"] > 0
        assert samples["caulk_run_info"][0].labels["caulk_run"] == "run"
        _, text = running.communicate("\n", timeout=DEADLINE_S)
    assert running.returncode == 0, text
