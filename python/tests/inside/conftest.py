"""Runs programs with `caulk._bootstrap` inside, as `caulk run` would, on an agent that writes down what it is told."""

from __future__ import annotations

import ast
import itertools
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "caulk"
EPOCH, STEPS, SECONDS = range(3)

#: What training programs begin with.
HEAD = """
import itertools, random, sys, threading, torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

torch.manual_seed(0)
model = nn.Linear(2, 1)
other = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
second = torch.optim.SGD(other.parameters(), lr=0.01)
data = TensorDataset(torch.randn(40, 2), torch.randn(40, 1))

def backward(net=model, x=None):
    x = torch.randn(4, 2) if x is None else x
    loss = net(x).square().mean()
    loss.backward()
    return loss

def train_step(net=model, optimizer=optimizer, x=None):
    optimizer.zero_grad()
    loss = backward(net, x)
    optimizer.step()
    return loss.item()

def validate(n=3):
    net = model.eval()
    with torch.no_grad():
        for _ in range(n):
            net(torch.randn(4, 2))
    net.train()
"""
HEAD_LINES = len(HEAD.splitlines())


@dataclass(frozen=True)
class Told:
    """What a program printed, and what its processes told the agent."""

    code: int
    stdout: str
    stderr: str
    calls: list[list]

    def of(self, name: str, pid: int | None = None) -> list[list]:
        """Arguments of all calls of one function, of one process or of all."""
        return [call[2:] for call in self.calls if call[1] == name and pid in (None, call[0])]

    @property
    def pids(self) -> list[int]:
        """Processes, in the order in which they greeted."""
        return list(dict.fromkeys(call[0] for call in self.calls if call[1] == "start"))

    @property
    def epochs(self) -> list[int]:
        """Numbers of the epochs told by the first process."""
        return [index for unit, index, *_ in self.of("boundary", self.pids[0]) if unit == EPOCH]

    @property
    def epoch_steps(self) -> list[int]:
        """Steps done when each epoch was told."""
        return [call[2] for call in self.of("boundary", self.pids[0]) if call[0] == EPOCH]

    @property
    def steps(self) -> int:
        """Steps of the first process at its end."""
        return self.of("bye", self.pids[0])[-1][0]

    def phases(self, unit: int = EPOCH) -> list[int]:
        """What the program was doing at each boundary of this unit."""
        return [call[3] for call in self.of("boundary") if call[0] == unit]

    @property
    def sites(self) -> dict[tuple[int, bool, bool], tuple[str, int, int, int]]:
        """What was last told of each backward site: (line below the head, retain, create) -> (function, counts)."""
        last = {}
        for _file, line, function, count, retain, create, stale, checked in self.of("backward_site"):
            last[line - HEAD_LINES, retain, create] = (function, count, stale, checked)
        return last

    @property
    def sources(self) -> set[tuple[int, str]]:
        """Unit and source of every loop that was recognised."""
        return {(call[0], call[5]) for call in self.of("loop")}


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the stand-in for the agent; the folder that holds it."""
    parent = tmp_path_factory.mktemp("installed")
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.data")
    shutil.copytree(PACKAGE, parent / "caulk", ignore=ignored)
    shutil.copy(HERE / "stand_in_agent.py", parent / "caulk" / "_agent.py")
    # Must stay out of reach of the programs.
    (parent / "beside_caulk.py").write_text("raise AssertionError('imported')\n")
    return parent


def variables(package: Path, folder: Path) -> dict[str, str]:
    """The environment that `caulk run` gives to a program."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CAULK_", "PYTHON", "TEST_"))}
    return {
        **kept,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(package / "caulk" / "_inject"),
        "CAULK_AGENT": f"package={package}",
        "CAULK_SOCKET": str(folder / "socket"),
        "TEST_AGENT_LOG": str(folder / "calls"),
    }


def read_calls(log: Path) -> list[list]:
    lines = log.read_text().splitlines() if log.exists() else []
    return [ast.literal_eval(line) for line in lines]


@pytest.fixture(scope="session")
def train(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Told]]:
    """Runs a training program, below its usual head, as a process of its own; torch has been imported before."""
    folder = tmp_path_factory.mktemp("train")
    with subprocess.Popen(
        [sys.executable, str(HERE / "forked_programs.py")],
        env=variables(package, folder),
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        numbers = itertools.count()

        def train(source: str, failing: bool = False) -> Told:
            program = folder / f"program{next(numbers)}.py"
            program.write_text(HEAD + textwrap.dedent(source))
            print(program, program, file=server.stdin, flush=True)
            pid, code = map(int, server.stdout.readline().split())
            stdout, stderr = (Path(f"{program}.{name}").read_text() for name in ("stdout", "stderr"))
            told = Told(code, stdout, stderr, [call for call in read_calls(folder / "calls") if call[0] == pid])
            assert code == 0, stderr
            assert failing or not told.of("note_hook_failed"), told.of("note_hook_failed")
            return told

        yield train
        server.stdin.close()


@pytest.fixture
def run(package: Path, tmp_path: Path) -> Callable[..., Told]:
    """Runs Python source, or a command, with caulk inside."""

    def run(
        source: str = "",
        *,
        command: list[str] | None = None,
        check: bool = True,
        head: bool = False,
        inject: bool = True,
        **changes: str,
    ) -> Told:
        program = tmp_path / "program.py"
        program.write_text((HEAD if head else "") + textwrap.dedent(source))
        environment = variables(package, tmp_path)
        (tmp_path / "calls").unlink(missing_ok=True)
        if not inject:
            for name in ("PYTHONPATH", "CAULK_AGENT", "CAULK_SOCKET", "TEST_AGENT_LOG"):
                del environment[name]
        elif "PYTHONPATH" in changes:
            changes["PYTHONPATH"] = environment["PYTHONPATH"] + os.pathsep + changes["PYTHONPATH"]
        done = subprocess.run(
            command or [sys.executable, str(program)],
            env={**environment, **changes},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        told = Told(done.returncode, done.stdout, done.stderr, read_calls(tmp_path / "calls"))
        if check:
            assert done.returncode == 0, done.stderr
            assert not told.of("note_hook_failed"), told.of("note_hook_failed")
        return told

    return run
