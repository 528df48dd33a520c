"""Hooks in multiprocessing: a child takes its next piece of work from a queue or a pipe.

Workers of data loaders, pools and executors, and servers of managers, make no steps of their own. Between two pieces of work
they hold nothing of either: there they take over the boundaries of the process that they work for.
"""

import sys
import threading
import time

from caulk import _around, _bootstrap

#: Seconds between two boundaries within an epoch: as long as this process has seen none end, and from then on.
_WITHIN_FIRST = 1.0
_WITHIN = 10.0
#: Seconds after which an epoch is a long one: what grows is looked for within it.
_LONG = 20.0
#: Messages through pipes before they are taken for work.
_FEW = 8
#: By module, classes with the methods that hand out work.
_SOURCES = {
    "multiprocessing.queues": (("Queue", "get"), ("SimpleQueue", "get")),
    "multiprocessing.connection": (("_ConnectionBase", "recv"),),
}


class Worker:
    """A process that another one has started to work for it; what it has seen of that one's progress."""

    def __init__(self, marks):
        self._marks = marks
        self.forget()

    def forget(self):
        """In the child of a fork: another process."""
        #: Threads of one process may take work at the same time: one of them sees to it.
        self._lock = threading.Lock()
        #: What has come through pipes.
        self._messages = 0
        #: Has its work come from a queue? Then what comes through a pipe is an answer to what it has asked meanwhile.
        self._queues = False
        #: Process that this one works for; 0 where there is none, `None` as long as it is not known.
        self._master = None
        self._seen = None
        #: Boundaries of epochs that this process has lived through, and when it has cut its last one of any kind.
        self._epochs = 0
        self._began = self._last = 0.0

    def takes_work(self, queued, by):
        """The next piece of work is here, from a queue or a pipe: this module has taken it."""
        self._queues = self._queues or queued
        if not queued and (self._queues or not self._is_asked(by)):
            return
        lock = self._lock
        if lock.acquire(blocking=False):
            try:
                self._look()
            finally:
                lock.release()

    def _is_asked(self, by):
        """Does what comes through a pipe come again and again, to the thread that does the work? The first may be all that a
        process is told before it goes its own way."""
        if hasattr(sys.modules["multiprocessing.process"].current_process(), "_manager_server"):
            works_here = True
        elif by == "multiprocessing.managers":
            # An answer of a manager's, in the middle of the work that has asked for it.
            works_here = False
        else:
            works_here = threading.current_thread() is threading.main_thread()
        self._messages += works_here
        return works_here and self._messages > _FEW

    def _look(self):
        marks = self._marks
        master = self._master
        if master is None:
            master = self._master = self._meet()
        if not master or marks.steps:
            return
        progress = marks.agent.progress_of(master)
        if progress is None:
            # Nobody trains there: time is the clock.
            marks.second()
        elif progress[:2] != self._seen:
            self._follow(*progress)
        else:
            marks.agent.step(0)

    def _meet(self):
        """The process that this one works for."""
        master = _bootstrap.master()
        if master:
            # Forked children end without running what `atexit` has been given; this runs in both kinds.
            util = sys.modules.get("multiprocessing.util")
            if util is not None:
                util.Finalize(None, self._marks.bye, exitpriority=0)
        return master

    def _follow(self, epoch, step, steps):
        """Cuts the boundary that was cut there since the last time. The first one only says where this process began."""
        now = time.monotonic()
        marks = self._marks
        if self._seen is None:
            marks.works_for = self._master
            self._began = now
            unit, index, level = (_bootstrap.EPOCH, epoch, 0) if epoch else (_bootstrap.STEPS, step, 0)
        elif epoch != self._seen[0]:
            self._epochs += 1
            unit, index, level = _bootstrap.EPOCH, epoch, 1
        elif now - self._last >= (_WITHIN if self._epochs else _WITHIN_FIRST):
            unit, index, level = _bootstrap.STEPS, step, int(not self._epochs and now - self._began >= _LONG)
        else:
            return
        self._seen = epoch, step
        self._last = now
        marks.mirror(unit, index - 1, steps, level)


def install(module, marks):
    """Installs the hooks in a module of multiprocessing's, which has just been imported."""
    if marks.worker is None:
        marks.worker = Worker(marks)
        marks.after_fork.append(marks.worker.forget)
    for owner, method in _SOURCES[module.__name__]:
        _hook(vars(module)[owner], method, marks, marks.worker, queued=method == "get")


def _hook(owner, method, marks, worker, queued):
    def asks(_args, _kwargs):
        return marks.alive or None

    def given(_ticket, _args, _item, failure):
        if failure is None:
            caller = sys._getframe().f_back
            worker.takes_work(queued, caller and caller.f_globals.get("__name__"))

    _around.wrap(marks, owner, method, asks, given)
