"""The GitHub Action: its comment is written once and then replaced. `gh` is a stand-in that keeps what it is asked."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import ROOT

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")

GH = """\
#!/usr/bin/env bash
printf '%s\\n' "$*" >> "$CALLS"
for word in "$@"; do
  case $word in body=@*) cp "${word#body=@}" "$BODY" ;; esac
done
[[ "$*" != *--method* ]] && cat "$KNOWN"
exit 0
"""


def comment(folder: Path, report: str, known: str = "") -> tuple[list[str], str]:
    """Calls of `gh`, and the comment."""
    (folder / "gh").write_text(GH)
    (folder / "gh").chmod(0o755)
    (folder / "known").write_text(known)
    (folder / "report.md").write_text(report)
    calls, body = folder / "calls", folder / "body"
    calls.unlink(missing_ok=True)
    names = {"CALLS": str(calls), "BODY": str(body), "KNOWN": str(folder / "known")}
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "GITHUB_REPOSITORY": "o/r", **names}
    command = ["bash", str(ROOT / "action" / "comment.sh"), "7", str(folder / "report.md")]
    subprocess.run(command, env=environment, check=True)
    return calls.read_text().splitlines(), body.read_text()


def test_the_first_comment_is_added_and_later_ones_replace_it(tmp_path):
    calls, body = comment(tmp_path, "### caulk\n")
    assert len(calls) == 2
    assert "--method POST repos/o/r/issues/7/comments" in calls[1]
    mark, text = body.split("\n", 1)
    assert mark.startswith("<!-- caulk ") and text == "### caulk\n"
    # The search finds what begins with the mark.
    assert mark in calls[0] and '"Bot"' in calls[0]
    calls, body = comment(tmp_path, "### new\n", known="42\n43\n")
    assert "--method PATCH repos/o/r/issues/comments/42" in calls[1]
    assert body.split("\n", 1) == [mark, "### new\n"]


def test_a_long_report_is_cut_between_characters(tmp_path):
    _, body = comment(tmp_path, "ä" * 40_000)
    assert len(body.encode()) < 65_536
    assert body.endswith("The rest is in the summary of the job.\n")
