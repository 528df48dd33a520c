"""Real trainings of `examples/real`: each leak is called and its line leads; clean runs are left alone.

Two of them need torch alone and run always. The others need the packages of requirements-real.txt.
"""

from __future__ import annotations

import re

import pytest
from harness import ROOT, Run, marked_line

REAL = ROOT / "examples" / "real"
# What a program imports first of what requirements-dev.txt does not bring along.
NEEDS = {
    "accelerate_text": "accelerate",
    "feature_extraction": None,
    "gan": None,
    "geometric_rings": "torch_geometric",
    "gym_catch": "gymnasium",
    "ignite_autoencoder": "ignite",
    "kfold": "sklearn",
    "lightning_visits": "lightning",
    "timm_shapes": "timm",
    "transformers_tagger": "transformers",
}
# Settings in which a run takes seconds, as in truth.toml. Without them it takes a minute.
QUICK = {"gan": ("--epochs", "10", "--size", "40"), "feature_extraction": ("--epochs", "10", "--size", "18")}
# Leaks whose line calls a library, where another line then grows the container: that one may come first.
GROWN_IN_LIBRARY = {"figures", "handlers", "message-hooks", "prepared-loaders", "uploads"}
ALWAYS = {("gan", "penalty"), ("gan", "optimizer-state"), ("gan", None), ("feature_extraction", None)}
# Where the line did not lead when it was last run: a chain of episodes whose holder was not found, and a reference cycle of
# which now one line is named and now the other.
MISSED = {"gym_catch": ("episodes",), "kfold": ("monitors",)}


def leaks(program: str) -> list[str]:
    """The leaks that a program's switch offers, by the marks on their lines."""
    return re.findall(r"# leak: ([\w-]+)$", (REAL / f"{program}.py").read_text(), re.MULTILINE)


def cases(clean: bool) -> list:
    """Parameters of a test: program and leak."""
    found = []
    for program in NEEDS:
        for leak in [None] if clean else leaks(program):
            name = program if leak is None else f"{program}:{leak}"
            marks = [] if (program, leak) in ALWAYS else [pytest.mark.full]
            if leak in MISSED.get(program, ()):
                marks.append(pytest.mark.xfail(reason="another line led when it was last run", strict=False))
            found.append(pytest.param(program, leak, id=name, marks=marks))
    return found


def run(run_caulk, program: str, leak: str | None) -> Run:
    if NEEDS[program]:
        pytest.importorskip(NEEDS[program])
    short = QUICK[program] if (program, leak) in ALWAYS else ()
    switch = ("--leak", leak) if leak else ()
    done: Run = run_caulk(REAL / f"{program}.py", *short, *switch, timeout=1200)
    assert done.code == 0, done.told()
    return done


def test_every_training_is_listed_with_three_leaks():
    programs = {path.stem for path in REAL.glob("*.py")} - {"measure"}
    assert programs == set(NEEDS)
    assert {program: len(set(leaks(program))) for program in NEEDS} == dict.fromkeys(NEEDS, 3)


@pytest.mark.parametrize(("program", "leak"), cases(clean=False))
def test_a_leak_is_called_and_its_line_leads(run_caulk, program, leak):
    done = run(run_caulk, program, leak)
    assert done.alarms, done.told()
    line = marked_line(REAL / f"{program}.py", f"# leak: {leak}")
    sites = done.alarms[0]["sites"] if leak in GROWN_IN_LIBRARY else done.alarms[0]["sites"][:1]
    ours = [site for site in sites if site["file"].endswith(f"{program}.py")]
    assert any(site["line"] <= line <= site.get("end_line", site["line"]) for site in ours), done.told()


@pytest.mark.parametrize(("program", "leak"), cases(clean=True))
def test_a_clean_training_is_left_alone(run_caulk, program, leak):
    done = run(run_caulk, program, leak)
    assert done.alarms == [], done.told()
    assert done.verdict()["state"] not in ("grows", "grows-within-epoch"), done.told()
