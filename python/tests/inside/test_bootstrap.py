"""The agent gets into every Python that a program starts, and changes nothing that the program can tell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

STATE = """
import sys, os
print(sorted(name for name in sys.modules if "caulk" not in name))
print(sys.argv[1:], sys.path[1:], sys.flags, "sitecustomize" in sys.modules)
print(__name__, globals().get("__file__"))
"""


def same(told, plain):
    assert (told.code, told.stdout, told.stderr) == (plain.code, plain.stdout, plain.stderr)


@pytest.mark.parametrize("options", [[], ["-W", "error"], ["-O"], ["-bb"], ["-X", "dev"], ["-u"], ["-P"], ["-B"]])
def test_a_script_cannot_tell_it_is_watched(run, tmp_path, options):
    if options == ["-P"] and sys.version_info < (3, 11):
        pytest.skip("3.10 has no -P")
    (tmp_path / "state.py").write_text(STATE)
    command = [sys.executable, *options, "state.py", "one", "--two"]
    told, plain = run(command=command), run(command=command, inject=False)
    # `atexit` and `gc` are part of the interpreter, and loaded by caulk a little earlier than by most programs.
    extra = set(eval(told.stdout.splitlines()[0])) - set(eval(plain.stdout.splitlines()[0]))
    assert extra <= {"atexit", "gc"}
    assert told.stdout.splitlines()[1:] == plain.stdout.splitlines()[1:]
    assert told.stderr == plain.stderr
    assert len(told.of("start")) == 1
    assert told.of("start")[0][1][-3:] == ["state.py", "one", "--two"]
    assert told.of("bye") == [[0, 0]]


def test_modules_commands_and_archives_are_watched(run, tmp_path):
    (tmp_path / "state.py").write_text(STATE)
    with zipfile.ZipFile(tmp_path / "state.pyz", "w") as archive:
        archive.writestr("__main__.py", STATE)
    for command in (["-m", "state"], ["-c", STATE], ["state.pyz"]):
        told = run(command=[sys.executable, *command])
        plain = run(command=[sys.executable, *command], inject=False)
        assert told.stdout.splitlines()[1:] == plain.stdout.splitlines()[1:]
        assert len(told.of("start")) == 1


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_isolated_interpreters_are_left_alone(run, option):
    told = run(command=[sys.executable, option, "-c", "import sys; print('caulk' in sys.modules)"])
    assert (told.stdout, told.stderr, told.calls) == ("False\n", "", [])


def test_import_times_name_nothing_but_caulk(run):
    told = run(command=[sys.executable, "-X", "importtime", "-c", ""])
    plain = run(command=[sys.executable, "-X", "importtime", "-c", ""], inject=False)

    def names(text):
        return {line.rpartition("|")[2].strip() for line in text.splitlines() if line.startswith("import time:")}

    extra = names(told.stderr) - names(plain.stderr)
    assert extra <= {"caulk", "caulk._bootstrap", "caulk._agent", "sitecustomize", "atexit", "gc"}


def test_the_users_sitecustomize_comes_after(run, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text("import sys\nsys.users_own = __file__\n")
    told = run(
        "import sys; print(sys.users_own, sys.modules['sitecustomize'].__file__, len(sys.path_importer_cache) > 0)",
        PYTHONPATH=str(tmp_path / "site"),
    )
    own = str(tmp_path / "site/sitecustomize.py")
    assert told.stdout.split() == [own, own, "True"]
    assert len(told.of("start")) == 1


@pytest.mark.parametrize(
    "text",
    ["raise ValueError('no')", "import nothing_like_this", "raise ImportError", "import warnings, sys; sys.x = 1"],
)
def test_what_the_users_sitecustomize_raises_is_as_before(run, tmp_path, text):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text(text)
    source = "import sys; print('sitecustomize' in sys.modules, getattr(sys, 'x', 0))"
    told = run(source, PYTHONPATH=str(tmp_path / "site"), check=False)
    plain = run(source, PYTHONPATH=str(tmp_path / "site"), inject=False, check=False)
    same(told, plain)


def test_nothing_beside_the_package_can_be_imported(run):
    told = run("import caulk\ntry:\n    import beside_caulk\nexcept ImportError as e:\n    print(e)")
    assert told.stdout == "No module named 'beside_caulk'\n"


def test_without_a_supervisor_nothing_is_loaded(run):
    told = run("import sys; print([m for m in sys.modules if 'caulk' in m], len(sys.meta_path))", TEST_AGENT_LOG="")
    assert told.stdout.startswith("[]")
    plain = run("import sys; print([], len(sys.meta_path))", inject=False)
    assert told.stdout == plain.stdout


def test_an_agent_that_cannot_be_loaded_harms_nothing(run, package, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(package / "caulk", broken / "caulk")
    (broken / "caulk/_agent.py").write_text("raise ImportError('wrong ELF class')\n")
    told = run("print('fine')", command=None, PYTHONPATH=str(package), inject=False)
    command = [sys.executable, "-c", "import sys; print('fine', [m for m in sys.modules if 'caulk' in m])"]
    told = run(
        command=command,
        PYTHONPATH=str(broken / "caulk/_inject"),
        inject=False,
        CAULK_AGENT="x=1",
        CAULK_SOCKET="/nowhere",
    )
    assert (told.stdout, told.stderr) == ("fine []\n", "")


@pytest.mark.parametrize("call", ["boundary", "step", "loop", "backward_site", "after_fork", "bye"])
def test_a_failing_agent_takes_itself_down_and_nothing_else(run, call):
    told = run(SMALL_TRAINING, check=False, TEST_AGENT_FAIL=call)
    plain = run(SMALL_TRAINING, inject=False)
    same(told, plain)
    notes = told.of("note_hook_failed")
    assert len(notes) == 1
    assert f"{call} fails on purpose" in notes[0][1]
    assert len(told.of("stop")) == 1


#: A handler of SIGALRM that raises, and the agent, whose functions a program may have interrupted.
HANDLER = """
import signal, sys

class Late(Exception):
    pass

def late(number, frame):
    raise Late

signal.signal(signal.SIGALRM, late)
agent = sys.modules["caulk._agent"]
"""


def test_what_a_handler_of_a_signal_raises_amid_a_hook_is_no_failure(run):
    told = run(
        HANDLER
        + textwrap.dedent("""
        import torch

        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        late_at = 3
        boundary = agent.boundary

        def slow(*arguments):
            global late_at
            boundary(*arguments)
            late_at -= 1
            if not late_at:
                signal.raise_signal(signal.SIGALRM)

        agent.boundary = slow
        for epoch in range(5):
            for _ in range(4):
                optimizer.zero_grad()
                model(torch.ones(1, 2)).sum().backward()
                try:
                    optimizer.step()
                except Late:
                    print("late")
        """)
    )
    assert told.stdout == "late\n"
    assert len(told.of("boundary")) > 3


def test_a_handler_of_a_signal_is_heard_where_the_program_calls_caulk(run):
    told = run(
        HANDLER
        + textwrap.dedent("""
        import caulk

        def interrupted(name):
            function = getattr(agent, name)

            def call(*arguments):
                setattr(agent, name, function)
                signal.raise_signal(signal.SIGALRM)

            setattr(agent, name, call)

        interrupted("boundary")
        try:
            caulk.epoch()
        except Late:
            print("late epoch")
        caulk.epoch()
        """)
    )
    assert told.stdout == "late epoch\n"
    assert told.epochs == [1]


SMALL_TRAINING = """
import os, torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(0)
for epoch in range(3):
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(torch.ones(1, 2)).sum()
        loss.backward()
        optimizer.step()
pid = os.fork()
if not pid:
    os._exit(0)
os.waitpid(pid, 0)
print("done")
"""


def test_children_are_watched_however_they_are_started(run):
    source = """
    import multiprocessing, os, subprocess, sys

    def work(queue):
        import caulk
        caulk.epoch()
        queue.put(os.getpid())

    if __name__ == "__main__":
        for method in ("fork", "spawn", "forkserver"):
            context = multiprocessing.get_context(method)
            queue = context.SimpleQueue()
            process = context.Process(target=work, args=(queue,))
            process.start()
            print(method, queue.get(), flush=True)
            process.join()
            assert process.exitcode == 0
        subprocess.run([sys.executable, "-c", "import caulk; caulk.epoch()"], check=True)
    """
    told = run(source)
    children = [int(line.split()[1]) for line in told.stdout.splitlines()]
    for pid in children:
        assert [call[:2] for call in told.of("boundary", pid)] == [[0, 0]], pid
        assert len(told.of("start", pid)) == 1
    # The main process, three children, the subprocess; servers of multiprocessing have nothing to say.
    assert len(told.pids) == 5
    assert told.stderr == ""


def test_a_fork_alone_is_a_process_of_its_own_and_says_nothing_until_it_marks(run):
    source = """
    import os, sys, warnings, caulk
    caulk.epoch()
    for marks in (False, True):
        pid = os.fork()
        if not pid:
            if marks:
                caulk.step()
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    caulk.epoch()
    """
    told = run(source, command=None)
    assert told.stderr == ""
    assert told.epochs == [0, 1]
    assert len(told.pids) == 2
    assert [call[:3] for call in told.of("boundary", told.pids[1])] == [[0, 0, 1]]


def test_the_program_may_replace_its_modules_and_finders(run):
    source = """
    import sys
    import torch

    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sys.modules = dict(sys.modules)
    sys.modules["torch"] = type("Lazy", (type(sys),), {"__getattr__": lambda self, name: getattr(torch, name)})("torch")
    for name in list(sys.modules):
        if name.startswith("caulk"):
            del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if isinstance(finder, type)]
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    print("done")
    """
    told = run(source)
    assert (told.stdout, told.stderr) == ("done\n", "")


def test_modules_are_loaded_as_ever(run):
    source = """
    import importlib, importlib.util, inspect, pkgutil, sys
    assert importlib.util.find_spec("torch").loader is not None
    import torch
    loader = torch.__spec__.loader
    assert "exec_module" not in vars(loader), vars(loader)
    assert torch.__loader__ is loader
    assert type(loader).__name__ == "SourceFileLoader"
    assert inspect.getsource(torch.autograd.backward).startswith("def backward")
    assert torch.nn.Module.eval.__qualname__ == "Module.eval"
    assert "set the module in evaluation mode" in torch.nn.Module.eval.__doc__.lower()
    importlib.reload(torch.nn.modules.module)
    import copy, pickle
    pickle.dumps(torch.nn.Linear(2, 1))
    """
    assert run(source).stderr == ""


def test_torch_is_not_imported_for_a_program_that_does_not(run):
    told = run(
        "import sys; print([m for m in sys.modules if m.split('.')[0] in ('torch', 'dis', 'inspect', 'typing')])"
    )
    assert told.stdout == "[]\n"


def test_other_pythons_are_left_alone(run, package, tmp_path):
    """Any older interpreter at hand; the syntax alone where there is none."""
    inject = (package / "caulk/_inject/sitecustomize.py").read_text()
    for word in (" f'", ' f"', ":=", "->", "nonlocal", "print("):
        assert word not in inject
    found = [
        path for name in ("python2.7", "python3.6", "python3.7", "python3.8", "python3.9") if (path := older(name))
    ]
    for python in found:
        env = {
            **os.environ,
            "PYTHONPATH": str(package / "caulk/_inject"),
            "CAULK_AGENT": "x",
            "CAULK_SOCKET": "y",
            "TEST_AGENT_LOG": str(tmp_path / "log"),
        }
        env.pop("PYTHONHOME", None)
        done = subprocess.run(
            [python, "-c", "import sys; print('sitecustomize' in sys.modules)"],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        plain = subprocess.run(
            [python, "-c", "import sys; print('sitecustomize' in sys.modules)"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert (done.stdout, done.stderr) == (plain.stdout, plain.stderr), python
    assert not (tmp_path / "log").exists()


def older(name: str) -> str | None:
    path = shutil.which(name)
    works = path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0
    return path if works else None


def test_time_cuts_the_boundaries_of_a_program_without_steps(run):
    source = """
    import time
    # Time of the program's own: on a busy machine more passes outside.
    end = time.process_time() + 1.2
    while time.process_time() < end:
        [[] for _ in range(20000)]
    """
    told = run(source, CAULK_AGENT="boundary=0.2s")
    boundaries = told.of("boundary")
    assert {call[0] for call in boundaries} == {2}
    assert len(boundaries) >= 3
    seconds = [call[1] for call in boundaries]
    assert seconds == sorted(seconds)
    assert {tuple(call[2:]) for call in boundaries} == {(0, 0, 1)}


@pytest.mark.parametrize(("setting", "unit"), [("boundary=5steps", 1), ("boundary=0.05s", 2)])
def test_boundaries_may_be_set_instead_of_epochs(run, setting, unit):
    source = """
    import time, torch
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        for _ in range(10):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            time.sleep(0.01)
    """
    told = run(source, CAULK_AGENT=setting)
    boundaries = [call for call in told.of("boundary") if call[2]]
    assert {(call[0], call[4]) for call in boundaries} == {(unit, 1)}
    if unit == 1:
        assert [call[1] for call in boundaries] == list(range(5, 41, 5))
    assert told.of("bye") == [[40, 4]]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_a_loader_say_which_they_are(run, method):
    source = f"""
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Rows(Dataset):
        def __len__(self):
            return 4
        def __getitem__(self, index):
            import caulk
            caulk.epoch()
            return torch.zeros(1)

    if __name__ == "__main__":
        loader = DataLoader(Rows(), num_workers=2, multiprocessing_context={method!r})
        for _ in loader:
            pass
    """
    told = run(source)
    assert sorted(str(call[3]) for call in told.of("start")) == ["0", "1", "None"]


def test_a_rank_is_told(run):
    assert run("", RANK="3").of("start")[0][2:] == [3, None]
    assert run("", RANK="x").of("start")[0][2:] == [None, None]


def test_arguments_that_are_not_text_are_told_as_they_can_be(run):
    told = run(command=[sys.executable, "-c", "", os.fsdecode(b"\\xff")])
    assert "xff" in told.of("start")[0][1][-1]


def test_marks_cost_nothing_without_caulk_run():
    source = f"""
import sys
sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})
before = set(sys.modules)
import caulk
assert set(sys.modules) - before == {{"caulk"}}, set(sys.modules) - before
caulk.epoch()
caulk.step()
with caulk.phase("validation") as phase:
    pass
try:
    caulk.phase("training")
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-I", "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout == "phase is one of train, validation, test, not 'training'\\n".replace("\\n", "\n")
