"""Starts caulk inside the program: finds the supervisor, cuts boundaries, waits for torch to be imported.

Imports nothing that Python has not loaded already, but for the compiled agent; everything about torch, Lightning and
Transformers is imported when the program imports those. Conducts itself as a guest: no output, no threads, no files, and
after the first failure nothing at all.
"""

import _thread
import atexit
import gc
import os
import sys
import time

import caulk

EPOCH, STEPS, SECONDS = range(3)
RUN, TRAIN, VALIDATION, TEST = range(4)

#: Boundaries of one spacing before the spacing doubles.
_DENSE = 64
#: Those within an epoch, or where there are none.
_DENSE_STEPS = 32
#: Step boundaries between two at which counts are told.
_FLUSH_EVERY = 16
#: Epochs shorter than this, in seconds, are not all told.
_SHORT_EPOCH = 0.1
#: Step boundaries within an epoch, once epochs are known.
_PER_EPOCH = 8
#: Without a step for so many seconds, time cuts the boundaries.
_IDLE = 60.0
#: Seconds between two of these at the beginning.
_TICK = 1.0
#: Seconds after which full collections are a clock too.
_FULL_TOO = 5.0
#: Age in seconds at which a child greets, if it has not had anything to say before.
_GROWN_UP = 10.0

#: Hooks by the module that they wait for: name of the module of caulk that has `install(module, marks)`.
_HOOKS = {
    "torch": "_hooks_torch",
    "lightning.pytorch.trainer.call": "_hooks_lightning",
    "pytorch_lightning.trainer.call": "_hooks_lightning",
    "transformers.trainer_callback": "_hooks_transformers",
    "multiprocessing.connection": "_hooks_workers",
    "multiprocessing.queues": "_hooks_workers",
    "multiprocessing.shared_memory": "_hooks_segments",
}

#: The same where the user wants a plan applied.
_APPLY = {"torch.utils.data.dataloader": "_hooks_apply"}


class Marks:
    """Where the program is, as far as anybody has told; cuts the boundaries."""

    def __init__(self, agent, settings, argv, rank, connected=True):
        self.agent = agent
        self.alive = True
        #: Called before a boundary is cut: what has been counted meanwhile.
        self.before_cut = []
        #: Called in the child of a fork.
        self.after_fork = []
        #: What this process does for another one, once it may (`_hooks_workers`).
        self.worker = None
        #: Called when everything is taken down.
        self.undo = []
        #: Tells how many epochs have begun at a `caulk.step()` in this frame, where torch has been hooked.
        self.detect = None
        #: What the hooks in torch have made of it: [`caulk._hooks_torch.Steps`], once torch is imported.
        self.torch_steps = None
        #: Finds comparable moments for boundaries by time: [`caulk._moments.Moments`], once torch is imported.
        self.moments = None
        #: What the guard asks for is done by this: [`caulk._guard.Guarded`], where there is a guard.
        self.guard = None
        #: As the supervisor has passed them on.
        self.settings = settings
        self._identity = (settings, argv, rank)
        #: Where the user wants boundaries instead of at epochs: every so many seconds or steps.
        self._seconds, self._steps = _spacing(settings)
        self._connected = connected
        self._reset()

    def _reset(self):
        self._busy = False
        #: Process whose boundaries this one takes over, until it makes steps itself; 0 where it cuts its own.
        self.works_for = 0
        #: Number of this process among those that train together, as far as it is known.
        self._rank = self._identity[2]
        #: A boundary that was cut inside a backward pass.
        self.waiting = None
        self._phase = None
        self.steps = 0
        #: Number of the epoch begun last.
        self.epoch = -1
        #: Did anything but the first step tell an epoch?
        self.epochs_known = False
        #: Have outputs been validated since the last step?
        self.validated = False
        self.testing = False
        self.said_epochs = False
        self.said_steps = False
        self._every = 1
        self._at_this_spacing = 0
        self._epoch_every = 1
        self._epochs_at_this_spacing = 0
        self._spacing_since = self._idle_since = self._began = time.monotonic()
        self._steps_at_tick = 0
        self._modules = 0
        self._epoch_began_at_step = 0
        self._ticks = 0
        self._tick = self._seconds or _TICK
        self._due = self._began + self._tick

    # What the hooks say.

    def step(self, epochs=0):
        """An optimizer step is done, the first one of so many new epochs."""
        self.steps += 1
        self.agent.step(self.steps)
        if self.epoch < 0 and not self.said_epochs:
            self.epoch = 0
            # What came before, a sanity check say, is no part of the training.
            self.validated = self.testing = False
            if not self._seconds and not self._steps:
                self._cut(EPOCH, 0, 0)
        elif epochs and not self.said_epochs:
            self.new_epoch(epochs)
        elif not self.steps % (self._steps or self._every):
            self._step_boundary()
        self.validated = self.testing = False
        if self.guard is not None:
            self.guard.stepped()

    def new_epoch(self, epochs=1):
        """So many epochs have begun since the last time; their boundary is here."""
        length = self.steps - self._epoch_began_at_step
        self._epoch_began_at_step = self.steps
        self.epochs_known = True
        self.epoch += epochs
        if self._seconds or self._steps:
            if not self.steps % (self._steps or self._every):
                self._step_boundary()
            return
        while self._every * _PER_EPOCH < length:
            self._every *= 2
        if self.epoch % self._epoch_every:
            return
        self._cut(EPOCH, self.epoch, 1)
        self._epochs_at_this_spacing += 1
        if self._epochs_at_this_spacing >= _DENSE:
            now = time.monotonic()
            if now - self._spacing_since < _DENSE * _SHORT_EPOCH:
                self._epoch_every *= 2
            self._spacing_since = now
            self._epochs_at_this_spacing = 0

    def mirror(self, unit, index, steps, level):
        """The process that this one works for has cut a boundary."""
        if not self._busy and self._connect():
            self._tell((unit, index, steps, RUN), level)

    def second(self):
        """Cuts a boundary by time, if one is due."""
        if time.monotonic() >= self._due:
            self._second_boundary()

    def _step_boundary(self):
        if self._seconds:
            self._second_boundary()
            return
        # Whether a census is worth its cost here, the agent decides.
        self._cut(STEPS, self.steps, 0 if self.epochs_known and not self._steps else 1)
        self._at_this_spacing += 1
        if self._at_this_spacing >= _DENSE_STEPS:
            self._every *= 2
            self._at_this_spacing = 0

    def _second_boundary(self):
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + self._tick
        self._cut(SECONDS, int(now - self._began), 1)
        self._ticks += 1
        if not self._seconds and not self._ticks % _DENSE:
            self._tick *= 2

    def note(self, note, *facts):
        """One line for the report, which a function of the agent makes from facts."""
        if self.alive and self._connect():
            note(*facts)

    # What the program says itself.

    def said_epoch(self):
        """`caulk.epoch()`."""
        if self.alive:
            with self.guarded("caulk.epoch"):
                if not self.said_epochs:
                    self.said_epochs = True
                    self._say_loop(EPOCH, "caulk.epoch")
                self.new_epoch()
                self.validated = False
                if self.guard is not None:
                    self.guard.between()

    def said_step(self):
        """`caulk.step()`."""
        if self.alive:
            with self.guarded("caulk.step"):
                if not self.said_steps:
                    self.said_steps = True
                    self._say_loop(STEPS, "caulk.step")
                self.step(self.detect(sys._getframe(2)) if self.detect else 0)
                if self.guard is not None:
                    self.guard.between()

    def enter_phase(self, phase):
        """`with caulk.phase(...)`; returns the phase outside."""
        outer, self._phase = self._phase or RUN, phase
        return outer

    def leave_phase(self, outer):
        """The end of `with caulk.phase(...)`."""
        if self._phase == VALIDATION:
            self.validated = True
        elif self._phase == TEST:
            self.testing = True
        self._phase = outer or None

    def _say_loop(self, unit, source):
        place = self.agent.user_frame()
        if place is not None:
            self.say_loop(unit, *place, "", source)

    def say_loop(self, unit, file, line, function, variable, source):
        """A loop of the program was recognised."""
        if self._connect():
            self.agent.loop(unit, plain(file), line, plain(function), plain(variable), source)

    # Boundaries.

    def _cut(self, unit, index, level):
        """Cuts a boundary. One inside a backward pass waits for its end: what the pass lets go of must not be looked at."""
        if not self._connect():
            return
        self.catch_up(0)
        boundary = (unit, index, self.steps, self.phase())
        if level and self.agent.passes():
            self.waiting = boundary
        else:
            self._tell(boundary, level)

    def catch_up(self, level=1):
        """Cuts the boundary that waits, if there is one."""
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            self._tell(waiting, level)

    def _tell(self, boundary, level):
        # No call between the look and the mark: neither another thread nor a handler of a signal comes between.
        if self._busy:
            # Another thread is at the one before. Epochs are few, and are what all else is counted by.
            if boundary[0] == EPOCH:
                self.waiting = boundary
            return
        self._busy = True
        try:
            if boundary[0] != STEPS or not self._at_this_spacing % _FLUSH_EVERY:
                for flush in self.before_cut:
                    flush()
            of = 0 if self.steps else self.works_for or master()
            if of:
                self.agent.boundary(*boundary, level, of)
            else:
                self._say_rank()
                self.agent.boundary(*boundary, level)
        finally:
            self._busy = False

    def _say_rank(self):
        """Tells the rank of this process once it is known, where the environment has not said it."""
        rank = _rank_in_group()
        if rank is None and self._rank is None:
            rank = _spawned_rank()
        if rank is not None and rank != self._rank:
            self._rank = rank
            self.agent.rank(rank)

    def phase(self):
        """What the program was doing last."""
        if self._phase is not None:
            return self._phase
        if self.testing:
            return TEST
        if self.validated:
            return VALIDATION
        return TRAIN if self.steps > 1 else RUN

    def collected(self, info):
        """A collection is over: a clock of programs that make no steps."""
        # After a full collection, which may be the program's own, it may look at what is left.
        full = info["generation"] == 2 and not self._seconds
        if not (full and time.monotonic() < self._due + _FULL_TOO):
            self.tick()

    def tick(self):
        """Time goes by: what cuts the boundaries of programs that make no steps."""
        follows = self._steps or (self.works_for and not self.steps)
        if not self.alive or self._busy or follows or time.monotonic() < self._due:
            return
        # No guard: nothing may be called once a trace is armed (`caulk_agent`, clock.rs).
        try:
            if self._is_starting() or (self.steps and not self._seconds and not self._is_idle()):
                self._due = time.monotonic() + self._tick
            elif self.moments is None or not self.moments.waits(self._tick):
                self._second_boundary()
        except RecursionError:  # The program is deep down: another time.
            pass
        except Exception as error:
            if self.fail("clock", error):
                raise

    def moment(self, kind):
        """As much is alive as at other moments of this kind: is a boundary waiting for it?"""
        if self.alive and not self._busy and self.moments is not None and self.moments.comes(kind):
            self._second_boundary()

    def _is_starting(self):
        """Is the program still being imported, which grows for seconds and says nothing, or a child finding out what it is?"""
        age = time.monotonic() - self._began
        if not self._connected and age < _GROWN_UP:
            return _worker() is None
        if age >= _IDLE:
            return False
        before, self._modules = self._modules, len(sys.modules)
        return self._modules != before or ("torch" in sys.modules and self.torch_steps is None)

    def _is_idle(self):
        """Has there been no step for a minute?"""
        now = time.monotonic()
        if self.steps != self._steps_at_tick:
            self._steps_at_tick = self.steps
            self._idle_since = now
        return now - self._idle_since >= _IDLE

    # Beginning, forks and the end.

    def _connect(self):
        """Greets the supervisor, where this process has not yet: children greet when they have something to say."""
        if not self._connected and self.alive:
            self._connected = True
            settings, argv, rank = self._identity
            self.alive = self.agent.start(settings, argv, rank, _worker())
        return self.alive

    def forked(self):
        """In the child of a fork: another process, that has made no steps yet."""
        if not self.alive:
            return
        try:
            with self.guarded("fork"):
                self.agent.after_fork()
                self._connected = False
                self._reset()
                for forget in self.after_fork:
                    forget()
                if self.guard is not None:
                    self.guard.forked()
        except BaseException as error:  # It would be printed, and the program not see it.
            self.agent.raise_later(error)

    def bye(self):
        """The interpreter ends in an orderly way."""
        if self.alive and self._connected:
            with self.guarded("exit"):
                self.catch_up(0)
                for flush in self.before_cut:
                    flush()
                if self.guard is not None:
                    self.guard.bye()
                self.agent.bye(self.steps, max(self.epoch + 1, 0))
        self.alive = False
        self.stop_clock()

    def start_clock(self):
        """Lets time cut boundaries where the program makes no steps."""
        self._collected = self.agent.Collected(self.collected)
        gc.callbacks.append(self._collected)
        # Many programs make next to nothing that the collector counts, or have turned it off.
        self.agent.clock(self.tick)

    def stop_clock(self):
        """Stops that."""
        self.agent.clock(None)
        if self._collected in gc.callbacks:
            gc.callbacks.remove(self._collected)

    def guarded(self, where):
        """A block whose failure takes caulk down, and never the program."""
        return _Guard(self, where)

    def fail(self, where, error):
        """Takes everything down after a failure; one line in the report says so.

        Not where a handler of a signal has raised it, which happened to run amid a hook: true, and the program is to see it.
        """
        if self.agent.raised_by_handler(error):
            return True
        if not self.alive:
            return False
        try:
            reason = plain(f"{type(error).__name__}: {error}")
            self.note(self.agent.note_hook_failed, where, reason)
        except Exception as another:  # The program goes on, whatever the agent does.
            if self.agent.raised_by_handler(another):
                raise
        self.alive = False
        caulk._marks = None
        for undo in self.undo:
            try:
                undo()
            except Exception as another:  # As above: the hooks look at `alive` first, in any case.
                if self.agent.raised_by_handler(another):
                    raise
        return False


class _Guard:
    __slots__ = ("_marks", "_where")

    def __init__(self, marks, where):
        self._marks = marks
        self._where = where

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _traceback):
        if kind is not None and issubclass(kind, Exception):
            return not self._marks.fail(self._where, error)
        return False


class ImportWatch:
    """Finder that installs hooks when the program has imported what they are for. Finds nothing itself."""

    def __init__(self, marks):
        self._marks = marks
        self._wanted = {**_HOOKS, **_APPLY} if "apply=" in marks.settings else dict(_HOOKS)
        self._looking = set()

    def find_spec(self, name, path=None, target=None):
        """Asks the other finders for the modules that are waited for, and watches these being executed."""
        if name not in self._wanted or not self._marks.alive:
            return None
        caller = (_thread.get_ident(), name)
        if caller in self._looking:
            return None
        self._looking.add(caller)
        try:
            for finder in list(sys.meta_path):
                find = None if finder is self else getattr(finder, "find_spec", None)
                spec = find(name, path, target) if find else None
                if spec is not None:
                    self._watch(name, spec.loader)
                    return spec
        finally:
            self._looking.discard(caller)
        return None

    def _watch(self, name, loader):
        """Wraps `exec_module` of this loader, on the instance, until the module has been executed."""
        execute = getattr(loader, "exec_module", None)
        if execute is None or isinstance(loader, type):
            return

        def executes(args, kwargs):
            return args[0] if args else (kwargs or {}).get("module")

        def executed(module, _args, _nothing, failure):
            if failure is None and getattr(module, "__name__", None) == name:
                # Whatever else the loader is used for, the program finds it as it was.
                if vars(loader).get("exec_module") is around:
                    del loader.exec_module
                self._install(name, module)

        marks = self._marks
        around = marks.agent.Around(
            execute, executes, executed, lambda error: marks.fail(f"hooks of {name}", error), False
        )
        try:
            if "exec_module" not in vars(loader):
                loader.exec_module = around
        except (AttributeError, TypeError):
            marks.note(marks.agent.note_not_watched, name)

    def _install(self, name, module):
        hook = self._wanted.pop(name, None)
        marks = self._marks
        interruption = None
        while hook is not None and marks.alive:
            undone = len(marks.undo)
            try:
                __import__(f"caulk.{hook}")
                sys.modules[f"caulk.{hook}"].install(module, marks)
                break
            except BaseException as error:
                while len(marks.undo) > undone:
                    marks.undo.pop()()
                if interruption is not None:
                    raise
                # Once more: perhaps it was a handler of a signal. Torch cannot be imported a second time.
                interruption = error
        if interruption is not None:
            marks.agent.raise_later(interruption)

    def remove(self):
        """Takes the finder off `sys.meta_path`."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def start(settings):
    """Connects to the supervisor and waits for torch; false where there is no supervisor, or nothing to watch, as in an
    interpreter beside the main one.
    """
    argv = [plain(argument) for argument in sys.orig_argv]
    if any("multiprocessing.resource_tracker" in argument for argument in argv[1:4]):
        return False
    from caulk import _agent

    if not _agent.is_main_interpreter():
        return False
    rank = os.environ.get("RANK", "")
    rank = int(rank) if rank.isascii() and rank.isdigit() else None
    settings = plain(settings)
    # Started by `multiprocessing`: perhaps a worker of a loader, which is known later, perhaps without anything to say.
    lazy = any("multiprocessing." in argument for argument in argv[1:6])
    if not lazy and not _agent.start(settings, argv, rank, None):
        return False
    _agent.configure_user_files([os.path.dirname(os.__file__), os.path.dirname(caulk.__file__)])
    marks = Marks(_agent, settings, argv, rank, not lazy)
    watch = ImportWatch(marks)
    sys.meta_path.insert(0, watch)
    marks.start_clock()
    os.register_at_fork(after_in_child=marks.forked)
    atexit.register(marks.bye)
    marks.undo += [watch.remove, marks.stop_clock, _agent.stop]
    run = next((setting[6:] for setting in settings.split(";") if setting.startswith("guard=")), None)
    if run is not None:
        from caulk import _guard

        marks.guard = _guard.Guarded(marks, run)
    caulk._marks = marks
    return True


def plain(text):
    """Text that UTF-8 can carry: names of files may be any bytes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _spacing(settings):
    """Spacing of boundaries in seconds and in steps, where the user has set one: `boundary=5s`, `boundary=100steps`."""
    for setting in settings.split(";"):
        key, _, value = setting.partition("=")
        if key == "boundary":
            try:
                if value.endswith("steps"):
                    return None, max(int(value.removesuffix("steps")), 1)
                return max(float(value.removesuffix("s")), 0.05), None
            except ValueError:
                return None, None
    return None, None


def master():
    """The process that `multiprocessing` has made this one for; 0 where there is none."""
    process = sys.modules.get("multiprocessing.process")
    parent = process and process.parent_process()
    return parent.pid if parent is not None else 0


def _rank_in_group():
    """Rank of this process as `torch.distributed` has it, once the program has made the process group."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or "get_rank" not in vars(distributed) or not distributed.is_initialized():
        return None
    return distributed.get_rank()


def _spawned_rank():
    """The number that `torch.multiprocessing.spawn` has given to this process, if it has started it."""
    spawn = sys.modules.get("torch.multiprocessing.spawn")
    if spawn is None:
        return None
    process = sys.modules["multiprocessing.process"].current_process()
    target = getattr(process, "_target", None)
    # `_wrap(fn, i, args, error_file)`.
    return process._args[1] if target is not None and target is vars(spawn).get("_wrap") else None


def replace(marks, owner, name, function):
    """Sets a function of a library's, until caulk is taken down; what somebody else puts on top then stays."""
    original = vars(owner)[name]
    setattr(owner, name, function)

    def restore():
        if vars(owner).get(name) is function:
            setattr(owner, name, original)

    marks.undo.append(restore)


def _worker():
    """Number of this process among the workers of a `DataLoader`, if it is one."""
    worker = sys.modules.get("torch.utils.data._utils.worker")
    info = getattr(worker, "_worker_info", None)
    return getattr(info, "id", None)
