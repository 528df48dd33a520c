"""`caulk run --guard`: real programs below a budget."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import CAULK, PROGRAMS, Run, program_environment

#: Counts its steps into a file and goes on from there. What a test wants of it is put in its place.
PROGRAM = """
import gc, os, signal, sys, time
import caulk

resumed = sys.argv[1] if len(sys.argv) > 1 else None
step = int(open(resumed).read()) if resumed else 0
print(f"begins at {{step}}", flush=True)
kept = []

def save(*_):
    path = os.path.abspath(f"step-{{step:04}}.txt")
    with open(path + ".tmp", "w") as file:
        file.write(str(step))
    os.replace(path + ".tmp", path)
    print(f"saved {{step}}", flush=True)
    return path

{setup}
while step < {steps}:
    step += 1
{body}
    caulk.step()
    time.sleep(0.01)
print("done", flush=True)
"""

LEAK = "kept.append(bytearray(b'x') * (1 << 20))"


def program(folder: Path, body: str, setup: str = "", steps: int = 120) -> Path:
    path = folder / "program.py"
    path.write_text(PROGRAM.format(setup=setup, body=textwrap.indent(body, "    "), steps=steps))
    return path


def guard(path: Path, *more: str, files: str = "step-*.txt") -> list[str]:
    """Options: a way to go on, and the files."""
    resume = f"{sys.executable} {path} {{checkpoint}}"
    return ["--guard", "--no-heap", "--resume-cmd", resume, "--checkpoint", files, *more]


def lines(run: Run | subprocess.CompletedProcess[str]) -> list[str]:
    """What the guard said."""
    return [line.partition("guard: ")[2] for line in run.stderr.splitlines() if line.startswith("caulk: guard: ")]


def restarts(run: Run | subprocess.CompletedProcess[str]) -> int:
    return sum(line.startswith("restart ") for line in lines(run))


def test_a_leaking_training_completes_below_a_limit_that_kills_it_otherwise(run_caulk, tmp_path):
    path = PROGRAMS / "saves_each_epoch.py"
    arguments = ["--epochs", "6", "--limit-mb", "160"]
    alone = subprocess.run(
        [sys.executable, str(path), *arguments],
        cwd=tmp_path,
        env=program_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert alone.returncode == 1 and "allocate memory" in alone.stderr, alone.stderr
    assert "done" not in alone.stdout

    words = " ".join([sys.executable, str(path), *arguments])
    options = ["--guard", "--checkpoint", "epoch-*.pt", "--resume-cmd", f"{words} --resume {{checkpoint}}"]
    run = run_caulk(path, *arguments, options=options)
    assert run.code == 0, run.told()
    out = run.stdout.splitlines()
    assert {f"epoch {number}" for number in range(1, 7)} <= set(out) and out[-1] == "done", run.told()
    assert restarts(run) >= 1, run.told()
    assert not any("allocate memory" in line for line in run.stderr.splitlines()), run.told()
    # One report of all lives, and again from the recording.
    lives = run.report["lives"]
    assert len(lives) == restarts(run) + 1 and lives[-1]["ended"] == "exited with code 0", run.told()
    assert run.report["summary"]["steps"] >= 600, run.told()
    again = subprocess.run([str(CAULK), "report", str(run.folder / "run")], capture_output=True, text=True, check=True)
    assert "Started again" in again.stdout and "life 2" in again.stdout


def test_the_list_of_runs_tells_how_the_last_life_ended(tmp_path):
    path = program(tmp_path, "if step == 5 and not resumed:\n    save()\n    raise MemoryError", steps=10)
    for line in (["run", *guard(path), "--", sys.executable, str(path)], ["runs"]):
        done = subprocess.run(
            [str(CAULK), *line], cwd=tmp_path, env=program_environment(), capture_output=True, text=True, check=True
        )
    assert "exit 0" in done.stdout and "exit 1" not in done.stdout, done.stdout


def test_each_life_can_be_shown_alone(run_caulk, tmp_path):
    path = program(tmp_path, "if step == 5 and not resumed:\n    save()\n    raise MemoryError", steps=20)
    run = run_caulk(path, options=guard(path))

    def report(*options: str) -> subprocess.CompletedProcess[str]:
        line = [str(CAULK), "report", str(run.folder / "run"), *options]
        return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)

    steps = [json.loads(report("--life", life, "--format", "json").stdout)["summary"]["steps"] for life in "12"]
    assert sum(steps) == run.report["summary"]["steps"] and steps[0] < steps[1]
    missing = report("--life", "3")
    assert missing.returncode == 125 and "no life 3" in missing.stderr and "2 lives" in missing.stderr
    # What shows one life shows the longest, and says so.
    for options in (["--lines"], ["--flame"], ["--from", "1"]):
        assert "life 2 of 2" in report(*options).stderr
        assert "life 2 of 2" not in report(*options, "--life", "1").stderr


def test_what_the_program_registers_saves_its_state(run_caulk, tmp_path):
    path = program(tmp_path, LEAK, "caulk.on_checkpoint(save)")
    resume = f"{sys.executable} {path} {{checkpoint}}"
    run = run_caulk(path, options=["--guard", "--no-heap", "--budget", "100MB", "--resume-cmd", resume])
    assert run.code == 0 and run.stdout.splitlines()[-1] == "done", run.told()
    assert restarts(run) >= 1, run.told()
    assert any("by caulk.on_checkpoint" in line for line in lines(run)), run.told()
    begun = [int(line.split()[-1]) for line in run.stdout.splitlines() if line.startswith("begins at")]
    assert begun == sorted(set(begun)) and begun[0] == 0, run.told()


def test_a_handler_of_sigusr1_saves_its_state(run_caulk, tmp_path):
    path = program(tmp_path, LEAK, "signal.signal(signal.SIGUSR1, save)")
    run = run_caulk(path, options=guard(path, "--budget", "100MB"))
    assert run.code == 0 and run.stdout.splitlines()[-1] == "done", run.told()
    assert restarts(run) >= 1, run.told()
    assert any("by SIGUSR1" in line for line in lines(run)), run.told()


def test_a_gpu_has_a_budget_of_its_own(run_caulk, tmp_path):
    # A stand-in for torch on a device of 1 GB, of which every step reserves another 10 MB.
    setup = """
import types
sys.modules["torch.cuda"] = types.SimpleNamespace(
    _initialized=True,
    device_count=lambda: 1,
    memory_reserved=lambda device: len(kept) * (10 << 20),
    get_device_properties=lambda device: types.SimpleNamespace(total_memory=1 << 30),
    empty_cache=lambda: None,
)
caulk.on_checkpoint(save)
"""
    path = program(tmp_path, "kept.append(1)\ntime.sleep(0.04)", setup, steps=100)
    run = run_caulk(path, options=guard(path, "--gpu-budget", "60%"))
    assert run.code == 0 and run.stdout.splitlines()[-1] == "done", run.told()
    assert restarts(run) >= 1, run.told()
    assert any("of 614 MB, the GPU budget" in line for line in lines(run)), run.told()


def test_a_cleanup_gives_back_what_the_collector_has_left(run_caulk, tmp_path):
    body = "knot = [bytearray(b'x') * (1 << 20)]\nknot.append(knot)"
    path = program(tmp_path, body, "gc.disable()", steps=200)
    run = run_caulk(path, options=guard(path, "--budget", "150MB"))
    assert run.code == 0, run.told()
    assert restarts(run) == 0, run.told()
    assert any(line.startswith("the cleanup gave back") and "MB" in line for line in lines(run)), run.told()


def test_the_end_by_an_exception_for_want_of_memory_is_followed_by_a_restart(run_caulk, tmp_path):
    path = program(tmp_path, "if step == 5 and not resumed:\n    save()\n    raise MemoryError", steps=10)
    run = run_caulk(path, options=guard(path))
    assert run.code == 0 and restarts(run) == 1, run.told()
    assert run.stdout.splitlines() == ["begins at 0", "saved 5", "begins at 5", "done"], run.told()


@pytest.mark.parametrize("whole", [True, False], ids=["with caulk inside", "with the program alone inside"])
def test_a_leap_beyond_the_control_groups_limit_is_followed_by_a_restart(tmp_path, control_group, whole):
    # At once more than there is: nobody can be asked for anything before that.
    body = "if step == 30 and not resumed:\n    save()\n    kept.append(bytearray(b'x') * (1 << 30))"
    path = program(tmp_path, body, steps=60)
    enter = control_group(150 << 20)
    line = [str(CAULK), "run", "--output", str(tmp_path / "run"), *guard(path), "--"]
    words = [sys.executable, str(path)]
    done = subprocess.run(
        [*enter, *line, *words] if whole else [*line, *enter, *words],
        cwd=tmp_path,
        env=program_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and restarts(done) == 1, done.stderr
    # The kernel is faster, as a rule.
    told = ("the program was killed", "ends the program")
    assert any(line.startswith(told) for line in lines(done)), done.stderr
    assert done.stdout.splitlines() == ["begins at 0", "saved 30", "begins at 30", "done"], done.stderr


def hard_limit_groups() -> list[Path]:
    """Groups that caulk has made below this process's own."""
    return list(Path("/sys/fs/cgroup").glob("**/caulk-[0-9]*-[0-9]*"))


@pytest.mark.parametrize(
    ("means", "told"),
    [
        ("cgroup", "the program was killed: it ended by signal 9 (SIGKILL): the kernel killed"),
        ("data", "the program ran out of memory"),
    ],
)
def test_a_leap_beyond_the_hard_limit_is_followed_by_a_restart(run_caulk, tmp_path, means, told):
    body = "if step == 30 and not resumed:\n    save()\n    kept.append(bytearray(b'x') * (1 << 30))"
    path = program(tmp_path, body, steps=60)
    options = guard(path, "--budget", "300MB", f"--hard-limit={means}")
    try:
        run = run_caulk(path, options=options)
    except AssertionError as error:
        if means == "cgroup" and "no hard limit can be set here" in str(error):
            pytest.skip("no control group can be made here")
        raise
    assert run.code == 0 and restarts(run) == 1, run.told()
    # Who is first, the kernel or the look that sees the limit reached, is open.
    ends = (told, "ends the program, to start it again: 300 MB of 300 MB, the control group's limit")
    assert any(line.startswith(ends) for line in lines(run)), run.told()
    assert run.stdout.splitlines() == ["begins at 0", "saved 30", "begins at 30", "done"], run.told()
    assert not hard_limit_groups()


def stand_in_for_systemd(folder: Path, script: str) -> dict[str, str]:
    """A `systemd-run` that does what the script says, first on the path."""
    folder.mkdir()
    program = folder / "systemd-run"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_a_scope_of_systemd_is_what_the_program_starts_in(run_caulk, tmp_path):
    script = f'echo "$@" >> {tmp_path}/asked; while [ "$1" != -- ]; do shift; done; shift; exec "$@"'
    env = stand_in_for_systemd(tmp_path / "bin", script)
    path = program(tmp_path, "pass", steps=10)
    run = run_caulk(path, options=guard(path, "--budget", "300MB", "--hard-limit=systemd"), env=env)
    assert run.code == 0 and run.stdout.splitlines()[-1] == "done", run.told()
    assert any("a scope of systemd" in line for line in lines(run)), run.told()
    tried, asked = (tmp_path / "asked").read_text().splitlines()
    assert tried.endswith("-- true") and asked.endswith(f"-- {sys.executable} {path}")
    assert all("--scope" in line and f"MemoryMax={300 << 20}" in line for line in (tried, asked))


def test_a_hard_limit_that_cannot_be_set_is_refused_before_anything_starts(tmp_path):
    env = stand_in_for_systemd(tmp_path / "bin", "echo 'Failed to connect to bus' >&2; exit 1")
    done = subprocess.run(
        [str(CAULK), "run", "--guard", "--hard-limit=systemd", "--", sys.executable, "-c", "print('started')"],
        cwd=tmp_path,
        env=program_environment(**env),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 125 and done.stdout == "", done.stderr
    assert "systemd makes no scope: Failed to connect to bus" in done.stderr, done.stderr


def test_without_a_wish_the_first_means_that_works_is_taken_and_the_others_are_told(run_caulk, tmp_path):
    path = program(tmp_path, "pass", steps=10)
    env = stand_in_for_systemd(tmp_path / "bin", "echo no >&2; exit 1")
    run = run_caulk(path, options=guard(path, "--hard-limit"), env=env)
    assert run.code == 0, run.told()
    held = [line for line in lines(run) if line.startswith("the kernel ")]
    assert len(held) == 1, run.told()
    refused = [line for line in lines(run) if line.startswith("no better hard limit here: ")]
    assert any("systemd makes no scope: no" in line for line in refused) or "in /sys/fs/cgroup" in held[0], run.told()


def test_other_exceptions_are_final(run_caulk, tmp_path):
    path = program(tmp_path, "if step == 5:\n    save()\n    raise ValueError('no')", steps=10)
    run = run_caulk(path, options=guard(path))
    assert run.code == 1 and restarts(run) == 0, run.told()


def test_restarts_without_progress_come_to_an_end(run_caulk, tmp_path):
    path = program(
        tmp_path, "if step == 3 and not resumed:\n    save()\nif step >= 5:\n    raise MemoryError", steps=10
    )
    run = run_caulk(path, options=guard(path, "--max-restarts", "1"))
    assert run.code == 1, run.told()
    # After the first life, which made a checkpoint, and after one more.
    assert restarts(run) == 2 and any(line.startswith("gives up: 1 restart") for line in lines(run)), run.told()


def test_nothing_to_go_on_with_is_said(run_caulk, tmp_path):
    path = program(tmp_path, "if step == 5:\n    raise MemoryError", steps=10)
    run = run_caulk(path, options=guard(path))
    assert run.code == 1 and restarts(run) == 0, run.told()
    assert any("there is no checkpoint to go on from" in line for line in lines(run)), run.told()


def test_a_broken_checkpoint_is_passed_over(run_caulk, tmp_path):
    body = """
        if not resumed and step in (3, 5):
            save()
        if not resumed and step == 5:
            time.sleep(0.05)
            with open("step-0009.txt", "w") as file:
                file.write("broken")
            raise MemoryError
    """
    path = program(tmp_path, textwrap.dedent(body), steps=12)
    run = run_caulk(path, options=guard(path))
    assert run.code == 0 and restarts(run) == 2, run.told()
    assert [line for line in run.stdout.splitlines() if line.startswith("begins")][-1] == "begins at 5", run.told()


def signalled(path: Path, folder: Path, send: Callable[[int, int], None], number: int, *options: str):
    """What came of a guarded program that got a signal once it was making steps."""
    command = [sys.executable, str(path)]
    running = subprocess.Popen(
        [str(CAULK), "run", "--output", str(folder / "run"), *guard(path, *options), "--", *command],
        cwd=folder,
        env=program_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Shells let what they start in the background ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert running.stdout is not None
    while running.stdout.readline() != "step\n":
        pass
    send(running.pid, number)
    stdout, stderr = running.communicate(timeout=60)
    return subprocess.CompletedProcess(command, running.returncode, stdout, stderr)


@pytest.mark.parametrize(
    ("number", "to_group"), [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGUSR1, False)]
)
def test_what_is_told_to_end_from_outside_is_not_started_again(tmp_path, number, to_group):
    # What follows the signal would be a reason for a restart.
    setup = "save()\ndef late(*_): raise MemoryError\nsignal.signal(signal.SIGTERM, late); signal.signal(signal.SIGUSR1, late)"
    path = program(tmp_path, "print('step', flush=True)", setup, steps=3000)
    done = signalled(path, tmp_path, os.killpg if to_group else os.kill, number)
    assert done.returncode in (1, 130), done.stderr
    assert restarts(done) == 0 and "begins" not in done.stdout, done.stderr
    assert any(line.startswith(f"{number.name} from outside") for line in lines(done)), done.stderr


def test_what_lets_a_term_from_outside_pass_is_killed_after_the_grace(tmp_path):
    setup = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    path = program(tmp_path, "print('step', flush=True)", setup, steps=3000)
    done = signalled(path, tmp_path, os.kill, signal.SIGTERM, "--grace", "1s")
    assert done.returncode == 137 and restarts(done) == 0, done.stderr
    assert any("has not ended in 1 s" in line for line in lines(done)), done.stderr


def test_a_program_that_does_not_end_is_killed_and_started_again(run_caulk, tmp_path):
    setup = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ncaulk.on_checkpoint(save)"
    path = program(tmp_path, LEAK + "\ntime.sleep(0.02)", setup, steps=100)
    run = run_caulk(path, options=guard(path, "--budget", "60MB", "--grace", "1s"))
    assert run.code == 0 and restarts(run) >= 1, run.told()
    assert run.report["lives"][0]["ended"].startswith("ended by signal 9 (SIGKILL)"), run.told()


def test_ctrl_c_between_two_lives_ends_the_run(tmp_path):
    path = program(tmp_path, "if step == 5:\n    save()\n    time.sleep(0.02)\nif step >= 5:\n    raise MemoryError")
    running = subprocess.Popen(
        [str(CAULK), "run", "--output", str(tmp_path / "run"), *guard(path), "--", sys.executable, str(path)],
        cwd=tmp_path,
        env=program_environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stderr is not None
    seen = []
    # Restarts without progress wait longer and longer.
    while not seen or " in 2 s: " not in seen[-1]:
        seen.append(running.stderr.readline())
    # It says so just before it waits.
    time.sleep(0.5)
    os.killpg(running.pid, signal.SIGINT)
    rest = running.communicate(timeout=60)[1]
    assert running.returncode == 1 and "restart 4" not in rest, rest
    assert "told to end from outside" in rest and "Started again twice" in rest, rest


def test_a_command_that_cannot_be_started_again_ends_the_run(run_caulk, tmp_path):
    path = program(tmp_path, "if step == 5:\n    save()\n    raise MemoryError")
    run = run_caulk(path, options=["--guard", "--checkpoint", "step-*.txt", "--resume-cmd", "./missing {checkpoint}"])
    assert run.code == 1 and "could not be started again" in run.stderr, run.told()


def test_what_does_not_fit_is_ended_with_a_reason(run_caulk, tmp_path):
    path = program(tmp_path, "pass", "kept.append(bytearray(b'x') * (80 << 20)); time.sleep(60)", steps=10)
    run = run_caulk(path, options=guard(path, "--budget", "60MB"))
    assert run.code == 143 and restarts(run) == 0, run.told()
    assert any("before its first step it takes" in line for line in lines(run)), run.told()


def test_without_a_way_to_go_on_the_program_is_left_to_itself(run_caulk, tmp_path):
    path = program(tmp_path, LEAK, steps=60)
    run = run_caulk(path, options=["--guard", "--no-heap", "--budget", "50MB"])
    assert run.code == 0 and run.stdout.splitlines()[-1] == "done", run.told()
    said = lines(run)
    assert any(line.startswith("no restarts: neither") for line in said), run.told()
    assert any(line.startswith("the limit is reached, and there is nothing") for line in said), run.told()


def test_ranks_save_at_a_common_step(run_caulk, tmp_path):
    body = LEAK + "\ntime.sleep(0.02 + 0.001 * rank)"
    setup = """
rank = int(os.environ["RANK"])
def save_rank():
    print(f"rank {rank} saves at {step}", flush=True)
    return save() if rank == 0 else None
caulk.on_checkpoint(save_rank)
"""
    path = program(tmp_path, body, setup, steps=90)
    launcher = tmp_path / "launcher.py"
    launcher.write_text(
        "import os, subprocess, sys\n"
        "start = lambda rank: subprocess.Popen([sys.executable, *sys.argv[1:]], env={**os.environ, 'RANK': str(rank)})\n"
        "ranks = [start(rank) for rank in (0, 1)]\n"
        "sys.exit(max(rank.wait() for rank in ranks))\n"
    )
    resume = f"{sys.executable} {launcher} {path} {{checkpoint}}"
    options = ["--guard", "--no-heap", "--budget", "150MB", "--resume-cmd", resume]
    run = run_caulk([sys.executable, launcher, path], options=options)
    assert run.code == 0 and restarts(run) >= 1, run.told()
    saved = [line.split() for line in run.stdout.splitlines() if line.startswith("rank")]
    steps = [{words[-1] for words in saved if words[1] == rank} for rank in "01"]
    assert steps[0] == steps[1] and steps[0], run.told()


@pytest.mark.full
@pytest.mark.parametrize("framework", ["lightning", "transformers"])
def test_a_framework_saves_its_own_state(run_caulk, tmp_path, framework):
    pytest.importorskip(framework)
    path = PROGRAMS / "framework_saves.py"
    words = [str(path), framework, str(tmp_path / "out")]
    resume = " ".join([sys.executable, *words, "{checkpoint}"])
    run = run_caulk(*words, options=["--guard", "--resume-cmd", resume])
    assert run.code == 0, run.told()
    out = [line for line in run.stdout.splitlines() if "at step" in line]
    assert out[-1] == "done at step 120", run.told()
    assert restarts(run) >= 1, run.told()
    assert any(f"by {framework.title()}" in line for line in lines(run)), run.told()
    begun = [int(line.split()[-1]) for line in out if line.startswith("begins")]
    assert begun == sorted(set(begun)) and begun[0] == 0, run.told()


@pytest.mark.full
def test_the_ranks_of_torchrun_are_restarted_as_a_whole(run_caulk, tmp_path):
    setup = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def save_rank():
    # A joint operation: it hangs where the ranks are not at the same step.
    steps = [None, None]
    dist.all_gather_object(steps, step)
    assert steps[0] == steps[1]
    return save() if rank == 0 else None
caulk.on_checkpoint(save_rank)
def anonymous(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon:")) * 1024
"""
    body = f"""
{LEAK}
optimizer.zero_grad()
model(torch.randn(4, 8)).sum().backward()
optimizer.step()
if step == 2:
    print("takes", anonymous("self") + (anonymous(os.getppid()) if rank == 0 else 0), flush=True)
time.sleep(0.03)
"""
    path = program(tmp_path, body, setup, steps=3)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29531"]
    probe = run_caulk([*launcher, path], options=["--no-heap"])
    taken = sum(int(line.split()[1]) for line in probe.stdout.splitlines() if line.startswith("takes"))
    path = program(tmp_path, body, setup, steps=120)
    resume = " ".join([*launcher, str(path), "{checkpoint}"])
    options = ["--guard", "--no-heap", "--budget", str(taken + (120 << 20)), "--resume-cmd", resume]
    run = run_caulk([*launcher, path], options=options)
    assert run.code == 0 and restarts(run) >= 1, run.told()
    assert any(line.startswith("checkpoint made") for line in lines(run)), run.told()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--resume-cmd", "python x.py"], "--guard"),
        (["--checkpoint", "*.pt"], "--guard"),
        (["--guard", "--resume-cmd", "python 'x.py"], "is not closed"),
        (["--guard", "--resume-cmd", ""], "is empty"),
        (["--guard", "--resume-cmd", "cd x && python x.py"], "for a shell"),
        (["--guard", "--budget", "5 elephants"], "not a size"),
        (["--guard", "--budget", "900TB"], "more than there is"),
        (["--guard", "--checkpoint", "a/***"], "is no pattern"),
        (["--guard", "--grace", "soon"], "not a time"),
        (["--guard", "--hard-limit=will"], "invalid value 'will'"),
        (["--hard-limit"], "--guard"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, options, told):
    done = subprocess.run(
        [str(CAULK), "run", *options, "--", sys.executable, "-c", "print('started')"],
        cwd=tmp_path,
        env=program_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (2, 125) and told in done.stderr, done.stderr
    runs = tmp_path / ".caulk" / "runs"
    assert done.stdout == "" and (not runs.exists() or not any(runs.iterdir()))
