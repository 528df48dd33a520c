"""`caulk run --metrics`: read by the parser of the Prometheus client library while a real program runs."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def served(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen]]:
    """The program under `caulk run --metrics`, and the address of its figures; it ends afterwards, as it should."""
    program = folder / 'a "b".py'
    program.write_text(PROGRAM)
    command = [str(CAULK), "run", "--output", "run", "--metrics", "127.0.0.1:0", "--budget", "1GB", *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, "--", sys.executable, str(program)],
        cwd=folder,
        env=program_environment(),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
    ) as running:
        assert running.stdin is not None and running.stderr is not None
        lines: list[str] = []
        while not (found := re.search(r"http://127\.0\.0\.1:\d+/metrics", lines[-1] if lines else "")):
            lines.append(running.stderr.readline())
            assert lines[-1], lines
        yield found[0], running
        _, text = running.communicate("\n", timeout=DEADLINE_S)
    assert running.returncode == 0, text


@pytest.mark.parametrize("options", [(), ("--guard",)], ids=["alone", "under the guard"])
def test_a_running_program_has_memory_epochs_and_limits(tmp_path: Path, options: tuple[str, ...]):
    with served(tmp_path, *options) as (address, _):
        until = time.monotonic() + DEADLINE_S
        while True:
            samples = read(address)
            epochs = samples.get("caulk_epochs_total", [])
            memory = {one.labels["process_pid"]: one.value for one in samples.get("process_memory_usage_bytes", [])}
            in_use = {one.labels["process_pid"]: one.value for one in samples.get("caulk_memory_in_use_bytes", [])}
            pid = epochs[0].labels["process_pid"] if epochs else ""
            # Epochs come at once, memory with the next sample.
            if pid and epochs[0].value == 5 and min(memory.get(pid, 0), in_use.get(pid, 0)) > 20 << 20:
                break
            assert time.monotonic() < until, samples
            time.sleep(0.1)
        assert samples["caulk_tree_memory_usage_bytes"][0].value >= memory[pid]
        assert samples["caulk_steps_total"][0].value == 5
        limits = {sample.labels["caulk_limit"]: sample.value for sample in samples["caulk_memory_limit_bytes"]}
        assert limits["budget"] == 1 << 30 and limits["physical"] > 0
        assert samples["caulk_run_info"][0].labels["caulk_run"] == "run"


@pytest.fixture
def prometheus(tmp_path: Path) -> Path:
    """The server, as Debian has it, without installing it."""
    if installed := shutil.which("prometheus"):
        return Path(installed)
    package = tmp_path / "package"
    package.mkdir()
    try:
        subprocess.run(["apt-get", "download", "prometheus"], cwd=package, check=True, capture_output=True)
        (archive,) = package.glob("prometheus_*.deb")
        subprocess.run(["dpkg", "-x", archive, package], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no Prometheus: {error}")
    return package / "usr/bin/prometheus"


@pytest.mark.full
def test_a_real_prometheus_reads_it(tmp_path: Path, prometheus: Path):
    with served(tmp_path) as (address, _), socket.create_server(("127.0.0.1", 0)) as free:
        target, port = address.split("/")[2], free.getsockname()[1]
        free.close()
        scrape = {"job_name": "caulk", "scrape_interval": "1s", "static_configs": [{"targets": [target]}]}
        # JSON is YAML.
        (tmp_path / "prometheus.yml").write_text(json.dumps({"scrape_configs": [scrape]}))
        words = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address=127.0.0.1:{port}"]
        server = subprocess.Popen(
            [prometheus, *words], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            values = {
                query: asked(port, query)
                for query in ("up", "caulk_epochs_total", "process_memory_usage_bytes", "caulk_tree_memory_usage_bytes")
            }
        finally:
            server.kill()
            server.wait()
    assert values["up"] == [1] and values["caulk_epochs_total"] == [5]
    assert max(values["process_memory_usage_bytes"]) > 20 << 20
    assert values["caulk_tree_memory_usage_bytes"][0] >= max(values["process_memory_usage_bytes"])


def asked(port: int, query: str) -> list[float]:
    """The values of a query, once there are some."""
    address = f"http://127.0.0.1:{port}/api/v1/query?query={query}"
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                found = json.load(answer)["data"]["result"]
        except OSError:
            found = []
        if values := [float(one["value"][1]) for one in found if float(one["value"][1])]:
            return values
        time.sleep(0.2)
    raise AssertionError(f"no value of `{query}`")
