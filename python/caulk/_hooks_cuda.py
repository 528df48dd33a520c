"""Hooks in torch's CUDA: memory that a device does not have, and replays of captured graphs.

Nothing here initialises CUDA. The observer is attached by torch itself, once the program has initialised it.
"""

import functools
import sys

from caulk import _around


def install(torch, marks, steps, hide):
    """Installs the hooks; `torch` has just been imported. `hide(function)`: its compiler is not to see the function."""
    cuda = getattr(torch, "cuda", None)
    if cuda is not None:
        _hook_refusals(torch, cuda, marks, hide)
        _hook_graphs(cuda, marks, steps, hide)


def _hook_refusals(torch, cuda, marks, hide):
    def refused(*figures):
        marks.note(marks.agent.gpu_refused, *figures)

    def attach():
        attach_observer = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
        if marks.alive and attach_observer is not None:
            attach_observer(marks.agent.Hook(refused, failed))

    hide(refused)
    failed = functools.partial(marks.fail, "hook of CUDA")
    if hasattr(cuda, "_lazy_call"):
        cuda._lazy_call(marks.agent.Hook(attach, failed))


def _hook_graphs(cuda, marks, steps, hide):
    graph = getattr(cuda, "CUDAGraph", None)

    def begins(_args, _kwargs):
        return marks.alive or None

    def captures(_args, _kwargs):
        if marks.alive:
            steps.capture_begins()

    def captured(_ticket, args, _result, failure):
        if failure is None:
            steps.capture_ends(args[0])

    def replayed(_ticket, args, _result, failure):
        if failure is None:
            steps.replayed(args[0], sys._getframe(1))

    def no_end(_ticket, _args, _result, _failure):
        """`captures` gives no ticket."""

    hooks = {"capture_begin": (captures, no_end), "capture_end": (begins, captured), "replay": (begins, replayed)}
    if all(name in getattr(graph, "__dict__", ()) for name in hooks):
        for name, (begin, end) in hooks.items():
            hide(begin)
            hide(end)
            _around.wrap(marks, graph, name, begin, end)
