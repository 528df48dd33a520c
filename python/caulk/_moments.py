"""Moments at which as much is alive as the last time, in programs that make no steps.

Time alone cuts boundaries there, in the midst of whatever is going on: inference is read now between two batches and now
with all of a network's activations alive. So a boundary that is due waits for the next moment of the same kind: the
program calls a model, at the same place in its code, or a data loader hands out a batch.

Calls of models are listened to from the time when a boundary is due until it is cut, and at no other: torch calls modules
by a longer way while anybody listens.
"""

import functools
import sys
import time
from _thread import get_ident

#: A moment that a data loader gives.
BATCH = "batch"
#: Boundaries in a row for which no moment came, until but every so many wait for one.
_PATIENCE = 3
_SELDOM = 8
#: Seconds for which one is waited for at most: modules are called by the longer way all the while.
_LONGEST = 2.0


class Moments:
    """Finds the moment for a boundary that is due."""

    def __init__(self, marks, torch):
        self._marks = marks
        modules = sys.modules["torch.nn.modules.module"]
        self._register = getattr(modules, "register_module_forward_pre_hook", None)
        self._calls = {
            function.__code__
            for name in ("__call__", "_call_impl", "_wrapped_call_impl")
            if hasattr(function := getattr(torch.nn.Module, name, None), "__code__")
        }
        self._hook = marks.agent.Hook(self._called, functools.partial(marks.fail, "module hook"))
        self._handle = None
        self.forget()

    def forget(self):
        """Starts over: in the child of a fork, whose parent may have been listening."""
        self._stop()
        #: The kind of moment that is waited for, once one has come: `BATCH`, or code and instruction that call a model.
        self._kind = None
        self._until = None
        self._misses = 0

    def waits(self, patience):
        """A boundary is due: should it wait, so many seconds at most?"""
        now = time.monotonic()
        if self._until is not None:
            if now < self._until:
                return True
            # None has come, or none of this kind: what the program does has changed.
            self._misses += 1
            self._kind = None
            self._end()
            return False
        if self._misses >= _PATIENCE:
            self._misses += 1
            if self._misses % _SELDOM:
                return False
        self._until = now + min(patience, _LONGEST)
        self._listen()
        return True

    def comes(self, kind):
        """A moment comes: is it the one that is waited for?"""
        if self._until is None or self._kind not in (None, kind):
            return False
        self._kind = kind
        self._misses = 0
        self._end()
        return True

    def _end(self):
        self._until = None
        self._stop()

    def _listen(self):
        # The compiler would take notice of the hook.
        if self._register is None or self._kind is BATCH or "torch._dynamo" in sys.modules:
            return
        self._thread = get_ident()
        self._handle = self._register(self._hook)

    def _stop(self):
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.remove()

    def _called(self, _module, _args):
        """A module is about to be called; only that of the program's own call is a moment."""
        if self._handle is None or get_ident() != self._thread:
            return
        frame = sys._getframe(1)
        within = False
        while frame is not None and (not within or frame.f_code in self._calls):
            within = within or frame.f_code in self._calls
            frame = frame.f_back
        outer = frame
        while outer is not None:
            if outer.f_code in self._calls:
                return
            outer = outer.f_back
        if within and frame is not None:
            self._marks.moment((frame.f_code, frame.f_lasti))
