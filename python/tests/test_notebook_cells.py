"""A notebook that is executed under `caulk run`: findings have the cell and the line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from harness import CAULK, program_environment

CELLS = (
    "import torch\nfrom torch import nn\n\nhistory = []\nmodel = nn.Linear(200, 200)",
    "# Weights that nobody needs.\ndef fit(epochs):\n    for epoch in range(epochs):\n        for step in range(4):\n"
    "            model(torch.randn(8, 200)).mean().backward()\n            history.append(model.weight.clone())\n"
    "        yield epoch",
    "import caulk\nfor epoch in fit(10):\n    caulk.epoch()",
)

# Runs the cells as ipykernel does: in `__main__`, under a name with the hash of the cell's text.
KERNEL = """
import json, os, sys


def murmur2(data):
    mask, factor = 0xFFFFFFFF, 0x5BD1E995
    value, whole = 0xC70F6907 ^ len(data), len(data) // 4 * 4
    for at in range(0, whole, 4):
        key = int.from_bytes(data[at : at + 4], "little") * factor & mask
        key = (key ^ key >> 24) * factor & mask
        value = value * factor & mask ^ key
    if data[whole:]:
        value = (value ^ int.from_bytes(data[whole:], "little")) * factor & mask
    value = (value ^ value >> 13) * factor & mask
    return value ^ value >> 15


for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        text = "".join(cell["source"])
        name = f"/tmp/ipykernel_{os.getpid()}/{murmur2(text.encode())}.py"
        exec(compile(text, name, "exec"), globals())
"""


def test_a_cell_that_grows_is_named_with_its_line(run_caulk, tmp_path: Path):
    cells = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in CELLS]
    notebook = {"cells": [{"cell_type": "markdown", "source": ["# Fit"]}, *cells], "nbformat": 4}
    (tmp_path / "fit.ipynb").write_text(json.dumps(notebook))
    run = run_caulk(KERNEL, "fit.ipynb", cwd=tmp_path)
    finding = run.report["findings"][0]
    site = finding["sites"][0]
    assert (site["file"], site["line"]) == ("fit.ipynb:cell 3", 6)
    assert site["text"] == "history.append(model.weight.clone())"
    words = [str(CAULK), "report", str(run.folder / "run"), "--format", "gitlab"]
    listed = subprocess.run(words, capture_output=True, check=True, cwd=tmp_path, env=program_environment()).stdout
    assert json.loads(listed)[0]["location"] == {"path": "fit.ipynb", "lines": {"begin": 6, "end": 6}}
