"""`caulk verify` and `caulk diff` on real programs."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from harness import CAULK, PROGRAMS, program_environment

pytest.importorskip("torch")


def caulk(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(CAULK), *map(str, words)],
        cwd=cwd,
        env=program_environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def verify(name: str, folder: Path, *options: str) -> tuple[int, dict[str, dict], str]:
    """Exit code, the checks by name, standard error."""
    words = ["verify", "--json", "verify.json", "--junit", "verify.xml", "--markdown", "verify.md", *options]
    done = caulk(*words, "--output", name, "--", sys.executable, PROGRAMS / f"{name}.py", cwd=folder)
    document = json.loads((folder / "verify.json").read_text())
    return done.returncode, {check["name"]: check for check in document["checks"]}, done.stderr


def test_a_clean_program_passes_and_a_leaky_one_fails_with_its_line(tmp_path):
    code, checks, text = verify("clean_bounded_deque", tmp_path, "--budget", "50GB")
    assert code == 0, text
    assert checks["stable"]["grade"] == "pass" and checks["host-below-budget"]["grade"] == "pass"
    assert checks["gpu-not-filling"]["grade"] == "not-applicable"

    code, checks, text = verify("list_in_loop", tmp_path, "--budget", "1MB")
    assert code == 1, text
    assert checks["stable"]["grade"] == "fail" and checks["host-below-budget"]["grade"] == "fail"
    places = [place for check in checks.values() for place in check.get("places", [])]
    assert any("list_in_loop.py:15" in place for place in places), text
    suite = ElementTree.parse(tmp_path / "verify.xml").getroot()
    assert int(suite.get("failures", "0")) >= 3 and len(suite.findall(".//testcase")) == len(checks)
    assert "| stable |" in (tmp_path / "verify.md").read_text()

    for options, has_source in [((), True), (("--no-source",), False)]:
        done = caulk("verify", "--from", "list_in_loop", "--html", "verify.html", *options, cwd=tmp_path)
        page = (tmp_path / "verify.html").read_text()
        assert "Verification failed" in page and "list_in_loop.py:15" in page, done.stderr
        assert ('class="line-number"' in page) == has_source

    # The same from the recording, with a checklist that wants less.
    (tmp_path / "checks.toml").write_text("[[check]]\nname = 'no-oom'\n[[check]]\nname = 'stable'\nrequired = false\n")
    done = caulk("verify", "--from", "list_in_loop", "--checklist", "checks.toml", cwd=tmp_path)
    assert done.returncode == 0 and "(not required)" in done.stdout, done.stdout + done.stderr

    done = caulk("diff", "list_in_loop", "clean_bounded_deque", cwd=tmp_path)
    assert done.returncode == 3 and "clean_bounded_deque.py" in done.stderr
    done = caulk("diff", "list_in_loop", "list_in_loop", "--html", "diff.html", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == "diff.html\n", done.stderr
    page = (tmp_path / "diff.html").read_text()
    assert 'class="sides"' in page and page.count("curve leading") >= 2 and "growth, bytes per epoch" in page
    done = caulk("diff", "list_in_loop", "list_in_loop", "--format", "json", "--fail-on", "1KB/epoch", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {row["trend"] for row in json.loads(done.stdout)["rows"]} <= {"same", "unclear"}


def test_a_program_ends_after_its_epochs(tmp_path):
    code, checks, text = verify("list_in_loop", tmp_path, "--epochs", "6")
    assert code == 1, text
    assert checks["ended"]["figure"] == "ended by caulk: 6 epochs were over"


def test_exit_codes_name_what_happened(tmp_path):
    fails = tmp_path / "fails.py"
    fails.write_text("raise SystemExit(7)\n")
    done = caulk("verify", "--output", "fails", "--", sys.executable, fails, cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    short = tmp_path / "short.py"
    short.write_text("print('done')\n")
    done = caulk("verify", "--output", "short", "--", sys.executable, short, cwd=tmp_path)
    assert done.returncode == 3 and "decided by" in done.stderr, done.stderr
    assert done.stdout == "done\n"
    (tmp_path / "wrong.toml").write_text("[[check]]\nname = 'stabel'\n")
    done = caulk("verify", "--checklist", "wrong.toml", "--", "true", cwd=tmp_path)
    assert done.returncode == 2 and "stabel" in done.stderr
    printed = caulk("verify", "--print-checklist", cwd=tmp_path)
    (tmp_path / "usual.toml").write_text(printed.stdout)
    done = caulk("verify", "--from", "fails", "--checklist", "usual.toml", cwd=tmp_path)
    assert done.returncode == 4, done.stderr
