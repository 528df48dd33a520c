"""Notes of the hooks: the agent has a function for each, which makes the sentence from facts."""

from __future__ import annotations

import re
from pathlib import Path

import caulk
from caulk import _agent
from harness import Run

SOURCES = Path(caulk.__file__).parent
#: A library without the class that a hook needs, and a training that imports it.
LIBRARY = "transformers/trainer_callback.py"
PROGRAM = """
import torch
import transformers.trainer_callback

model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
"""


def test_every_note_that_a_hook_makes_is_a_function_of_the_agent():
    used = {name for path in SOURCES.glob("_*.py") for name in re.findall(r"agent\.(note_\w+)", path.read_text())}
    assert used == {name for name in dir(_agent) if name.startswith("note_")}
    declared = re.findall(r"^def (note_\w+)", (SOURCES / "_agent.pyi").read_text(), re.MULTILINE)
    assert used == set(declared)
    reasons = {name for path in SOURCES.glob("_*.py") for name in re.findall(r"reasons\.(\w+)", path.read_text())}
    assert reasons == {name for name in dir(_agent.LoaderKept) if not name.startswith("_")}


def test_a_library_without_a_place_for_a_hook_is_reported(run_caulk, tmp_path):
    folder = tmp_path / "transformers"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (tmp_path / LIBRARY).write_text("")
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    run: Run = run_caulk(program, cwd=tmp_path)
    [note] = run.notes_about("not-hooked")
    assert note.startswith("this transformers has no CallbackHandler: epochs are told from its loops"), run.told()
