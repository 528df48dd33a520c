"""What `caulk run --guard` asks of the program: cleanups and checkpoints, on the main thread, between two steps.

Loaded under `--guard` alone. Unlike the rest of what `caulk run` brings into a program, this collects garbage and calls
the program's own functions to save its state: that is what the user has asked for.
"""

import gc
import os
import sys
import time
from _thread import get_ident

import caulk

_CLEANUP, _CHECKPOINT, _WHERE, _STOP_AT, _CANCEL = range(5)
_DONE, _FAILED, _AT, _ARRIVED = range(4)

#: Seconds between two messages on how far the program is.
_TELL_EVERY = 0.5
#: A rank waits at most so many seconds for the others, once it has arrived at a common step; the supervisor calls it off
#: before that.
_WAIT_FOR_OTHERS = 20.0
#: Checkpoints that the guard has had made and keeps; the one before the last is for when that one is broken.
_KEPT = 2


class Guarded:
    """The program's side of the guard: takes requests at steps, and acts where the state can be saved."""

    def __init__(self, marks, run):
        self._marks = marks
        self._agent = marks.agent
        #: Name of the run, the same in all its lives.
        self.run = run
        self._main = get_ident()
        #: A framework that saves its state by itself: an object with `name`, `spare_signal` and `save()`.
        self.framework = None
        self._forget()

    def _forget(self):
        self._next_tell = 0.0
        self._told_way = None
        #: Request for a checkpoint that waits for a place between two steps.
        self._wanted = None
        #: Request to wait for the other ranks, and the step at which to do so.
        self._stop = None
        #: Steps at the last place between two of them.
        self._place = 0
        #: The others were waited for in vain: they must not be joined later.
        self._deserted = False

    def enter_framework(self, framework):
        """A training loop begins that saves its state by itself; `None`: it has ended."""
        self.framework = framework
        if framework is not None and get_ident() == self._main:
            # At once: the supervisor is to know whether SIGUSR1 means something else now.
            self._tell_if_due()

    def forked(self):
        """In the child of a fork: nothing is asked of it, and the framework's trainer is its parent's."""
        self.framework = None
        self._forget()

    # Where the program is.

    def stepped(self):
        """A step is done. What it leaves behind may not be in order yet: the program's own code comes after it."""
        if get_ident() != self._main:
            return
        if self.framework is None and self._place < self._marks.steps - 1 and self._is_due():
            # There was no better place since the last step.
            self._act()
        self._tell_if_due()
        while (request := self._agent.asked()) is not None:
            self._take(request)

    def between(self):
        """A place between two steps, where everything is in order."""
        self._place = self._marks.steps
        if self.framework is None and self._is_due() and get_ident() == self._main:
            self._act()

    def framework_is_between(self):
        """The same, told by the framework."""
        if self._is_due() and get_ident() == self._main:
            self._act()

    def _is_due(self):
        return self._wanted is not None or (self._stop is not None and self._marks.steps >= self._stop[1])

    # Requests.

    def _take(self, request):
        number, wish, step = request
        steps = self._marks.steps
        if wish == _CLEANUP:
            self._clean_up(number)
        elif wish == _WHERE:
            self._answer(number, _AT)
        elif wish == _STOP_AT:
            self._stop, self._deserted = None, False
            if steps > step:
                self._answer(number, _AT)
            else:
                self._stop = (number, step)
        elif wish == _CHECKPOINT and self._deserted:
            self._deserted = False
            self._answer(number, _FAILED, text="a rank had not waited any longer")
        elif wish == _CHECKPOINT:
            self._wanted, self._stop = number, None
        elif wish == _CANCEL:
            self._wanted = self._stop = None
            self._deserted = False

    def _act(self):
        if self._stop is not None:
            self._wait_for_others()
        number, self._wanted = self._wanted, None
        if number is not None:
            self._save(number)

    def _wait_for_others(self):
        """Says that this rank has arrived, and waits until it is told what to do."""
        (number, step), self._stop = self._stop, None
        if self._marks.steps > step:
            self._answer(number, _AT)
            return
        self._answer(number, _ARRIVED)
        request = self._agent.asked(_WAIT_FOR_OTHERS)
        self._deserted = request is None
        if request is not None:
            self._take(request)

    def _clean_up(self, number):
        before = self._agent.memory_figures()[0]
        while gc.collect():
            pass
        gpu = _empty_gpu_cache()
        self._agent.trim_malloc()
        freed = max(before - self._agent.memory_figures()[0], 0)
        self._answer(number, _DONE, freed + gpu)

    def _save(self, number):
        try:
            path = self.framework.save(number) if self.framework is not None else _call_savers()
        except Exception as error:  # The training goes on without a checkpoint; the user is told.
            self._answer(number, _FAILED, text=f"{type(error).__name__}: {error}")
            if self._agent.raised_by_handler(error, programs=True):
                raise
            return
        if path is not _LATER:
            self.saved(number, path)

    def saved(self, number, path):
        """The checkpoint that was asked for is there."""
        self._answer(number, _DONE, path=os.path.abspath(os.fspath(path)) if path else "")

    def _answer(self, number, outcome, freed=0, path="", text=""):
        plain = sys.modules["caulk._bootstrap"].plain
        self._agent.answer(number, outcome, self._marks.steps, freed, plain(path), plain(text))

    # What is told without being asked.

    def _tell_if_due(self):
        now = time.monotonic()
        way = self._way()
        if now < self._next_tell and way == self._told_way:
            return
        self._next_tell, self._told_way = now + _TELL_EVERY, way
        spares = self.framework is not None and self.framework.spare_signal
        self._agent.standing(self._marks.steps, max(self._marks.epoch, 0), way, spares, _gpu_memory())

    def _way(self):
        if self.framework is not None:
            return self.framework.name
        return "caulk.on_checkpoint" if caulk._savers else ""

    def bye(self):
        """The interpreter ends; is it an exception that ends it?"""
        error = getattr(sys, "last_value", None)
        if error is not None and self._marks._connect():
            # `str` would call code of the program's.
            texts = [text for text in BaseException.args.__get__(error) if type(text) is str]
            plain = sys.modules["caulk._bootstrap"].plain
            types = [plain(kind.__name__) for kind in type(error).__mro__]
            self._agent.uncaught(types, plain(" ".join(texts)[-4000:]))


#: What a framework's `save` returns when it saves only later.
_LATER = object()


def _call_savers():
    """Calls what the program has given to `caulk.on_checkpoint`; the last path that comes back."""
    path = None
    for save in list(caulk._savers):
        path = save() or path
    return path


def _cuda():
    cuda = sys.modules.get("torch.cuda")
    return cuda if cuda is not None and getattr(cuda, "_initialized", False) else None


def _empty_gpu_cache():
    cuda = _cuda()
    if cuda is None:
        return 0
    before = _gpu_memory()[0]
    cuda.empty_cache()
    return max(before - _gpu_memory()[0], 0)


def _gpu_memory():
    """Bytes reserved on the devices in use, and bytes of these devices."""
    cuda = _cuda()
    if cuda is None:
        return 0, 0
    reserved = total = 0
    for device in range(cuda.device_count()):
        of_device = cuda.memory_reserved(device)
        if of_device:
            reserved += of_device
            total += cuda.get_device_properties(device).total_memory
    return reserved, total


class Lightning:
    """Saves by `trainer.save_checkpoint`, at the end of a batch."""

    name = "Lightning"

    def __init__(self, trainer, run):
        self._trainer = trainer
        self._run = run
        #: Under SLURM its handler of SIGUSR1 queues the job again.
        self.spare_signal = "SLURM_JOB_ID" in os.environ

    def save(self, _number):
        """The path of the checkpoint; all ranks take part."""
        trainer = self._trainer
        folder = os.path.join(trainer.default_root_dir, "caulk_checkpoints", self._run)
        path = os.path.join(folder, f"step-{trainer.global_step}.ckpt")
        trainer.save_checkpoint(path)
        if trainer.is_global_zero:
            files = [entry for entry in os.scandir(folder) if entry.is_file()]
            for old in sorted(files, key=lambda entry: entry.stat().st_mtime_ns)[:-_KEPT]:
                os.unlink(old.path)
        return path


class Transformers:
    """Saves through the `control` of its callbacks: `Trainer` does the rest after the step."""

    name = "Transformers"
    spare_signal = False

    def __init__(self, guarded):
        self._guarded = guarded
        self._waits = None
        self._wants = False

    def save(self, number):
        """To be saved at the end of the step."""
        self._waits, self._wants = number, True
        return _LATER

    def step_ended(self, control):
        """Its event `on_step_end`, after the callbacks."""
        self._guarded.framework_is_between()
        if self._wants:
            self._wants = False
            control.should_save = True

    def has_saved(self, args, state):
        """Its event `on_save`."""
        number, self._waits = self._waits, None
        if number is not None:
            self._guarded.saved(number, os.path.join(args.output_dir, f"checkpoint-{state.global_step}"))
