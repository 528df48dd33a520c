"""Where the program starts backward passes, how, and whether gradients were left over from the step before.

Counts per line in a dict; told at boundaries. Nothing here looks at a value on a device but for the first few steps, nor
where a look would run code of the program's: a subclass of tensors, a mode. A graph that is being captured is left alone.
"""

import weakref
from _thread import get_ident

from caulk._bootstrap import plain
from caulk._loops import where

#: Steps of an optimizer after which its gradients are no longer looked at; on a device, where a look waits for it.
_LOOKS = 20
_LOOKS_ON_DEVICE = 3
#: The same when they are looked at once more: after so many steps, and whenever these are twice as many.
_LOOKS_LATER = 2
_LOOK_AGAIN = 64
#: Optimizers that are looked at.
_MOST = 64


class BackwardSites:
    """Lines that call `backward` or `autograd.grad`."""

    def __init__(self, marks):
        self._marks = marks
        #: Code of the user's own, by number, and `None` for all other.
        self._is_user = {}
        self._kept = []
        self.forget()

    def forget(self):
        """Starts counting anew: in the child of a fork."""
        self._sites = {}
        self._dirty = False

    def called(self, frame, retain_graph, create_graph, calls):
        """Counts calls in `frame`, or by the user's code that called it; returns their site."""
        known = self._is_user
        while True:
            code = frame.f_code
            number = id(code)
            if number not in known:
                # The code object is kept, so that its number stays its own.
                known[number] = code if self._marks.agent.is_user_file(code.co_filename) else None
                self._kept.append(code)
            if known[number] is not None or frame.f_back is None:
                break
            frame = frame.f_back
        key = (number, frame.f_lasti, retain_graph, create_graph)
        site = self._sites.get(key)
        if site is None:
            site = self._sites[key] = _Site(code, frame.f_lineno, bool(retain_graph), bool(create_graph))
        site.count += calls
        self._dirty = True
        return site

    def flush(self):
        """Tells what has changed since the last boundary."""
        if not self._dirty:
            return
        self._dirty = False
        for site in self._sites.values():
            if site.told != site.count:
                site.told = site.count
                self._marks.agent.backward_site(*site.place(), site.count, *site.flags, site.stale, site.checked)


class _Site:
    __slots__ = ("checked", "code", "count", "flags", "line", "stale", "told")

    def __init__(self, code, line, retain_graph, create_graph):
        self.code = code
        self.line = line or 0
        self.flags = (retain_graph, create_graph)
        self.count = self.told = self.stale = self.checked = 0

    def place(self):
        file, function = where(self.code)
        return plain(file), self.line, plain(function)


class StaleGradients:
    """Do backward passes start with gradients that an optimizer has already applied?"""

    def __init__(self, torch, raised_by_handler):
        self._tensors = _Tensors(torch, raised_by_handler)
        self._watched = {}
        #: Those whose gradients are still looked at.
        self.active = []

    def forget(self):
        """Drops all optimizers."""
        self._watched.clear()
        self.active = []

    def meets(self, optimizer):
        """An optimizer that has not been seen before."""
        if len(self._watched) < _MOST:
            watched = self._watched[id(optimizer)] = _Watched(optimizer)
            self.active.append(watched)

    def stepped(self, optimizer):
        """The optimizer has applied its gradients; true where they are to be looked at once more."""
        watched = self._watched.get(id(optimizer))
        if watched is None:
            return False
        watched.steps += 1
        again = watched.looks_left <= 0 and not watched.ended and watched.steps >= watched.again_at
        if again:
            # A program may clear them from some time on.
            watched.again_at = 2 * watched.steps
            watched.looks_left = _LOOKS_LATER
            if watched not in self.active:
                self.active.append(watched)
        if watched.looks_left > 0:
            watched.applied = True
            watched.thread = get_ident()
        return again

    def before(self):
        """Looks at the gradients that have been applied; pass the result to [`StaleGradients.after`]."""
        # While another thread trains, its gradients are not to be touched.
        thread = get_ident()
        self.active = [watched for watched in self.active if watched.looks_left > 0]
        applied = [watched for watched in self.active if watched.applied and watched.thread == thread]
        looks = ()
        if applied and not self._tensors.are_observed():
            with self._tensors.no_overrides():
                looks = [look for watched in applied if (look := watched.look(self._tensors))]
        return looks

    def after(self, looks, site):
        """Counts for `site` the gradients that its backward pass has added to."""
        tensors = self._tensors
        for watched, parameter, gradient, version, stale in looks:
            with tensors.no_overrides():
                now = parameter.grad
                if now is None or (now is gradient and tensors.version(now) == version):
                    continue
            watched.applied = False
            watched.looks_left -= 1
            site.checked += 1
            site.stale += stale


class _Watched:
    """An optimizer, and the parameter of it that is looked at."""

    __slots__ = ("again_at", "applied", "ended", "looks_left", "optimizer", "steps", "thread")

    def __init__(self, optimizer):
        self.optimizer = weakref.ref(optimizer)
        self.applied = False
        #: It cannot be looked at.
        self.ended = False
        self.thread = None
        self.looks_left = _LOOKS
        #: Steps so far, and those after which it is looked at once more.
        self.steps = 0
        self.again_at = _LOOK_AGAIN

    def end(self):
        """Nothing is looked at any more."""
        self.ended = True
        self.looks_left = 0

    def look(self, tensors):
        """The parameter, its gradient, the gradient's version, and whether it is other than zero."""
        optimizer = self.optimizer()
        parameter = None if optimizer is None else _smallest(optimizer, tensors)
        if parameter is None:
            self.end()
            return None
        gradient = parameter.grad
        if gradient is None:
            return self, parameter, None, 0, False
        if not tensors.is_plain(gradient) or gradient.is_sparse or gradient.device.type not in ("cpu", "cuda"):
            self.end()
            return None
        if gradient.device.type == "cuda":
            # A value that is waited for would spoil the capture.
            if tensors.are_captured():
                return None
            self.looks_left = min(self.looks_left, _LOOKS_ON_DEVICE)
        try:
            stale = bool(gradient.detach().ne(0).any())
        except RuntimeError as error:
            if tensors.raised_by_handler(error):
                raise
            # A tensor of a kind of its own.
            self.end()
            return None
        return self, parameter, gradient, tensors.version(gradient), stale


class _Tensors:
    """Torch, as far as its tensors can be looked at without anybody noticing."""

    def __init__(self, torch, raised_by_handler):
        core = torch._C
        self.raised_by_handler = raised_by_handler
        self._plain = (torch.Tensor, torch.nn.Parameter)
        #: Switches off what subclasses and modes do at calls of torch's functions.
        self.no_overrides = core.DisableTorchFunction
        self._dispatch_modes = getattr(core, "_len_torch_dispatch_stack", None)
        self._is_capturing = getattr(core, "_cuda_isCurrentStreamCapturing", None)

    def are_observed(self):
        """Would a mode of the program's see every operation?"""
        return self._dispatch_modes is None or self._dispatch_modes() > 0

    def are_captured(self):
        """Is the current stream of the GPU being captured into a graph?"""
        return self._is_capturing is None or self._is_capturing()

    def is_plain(self, tensor):
        """Is it a tensor of torch's own class?"""
        return type(tensor) in self._plain

    def version(self, tensor):
        """Counts changes in place; 0 for tensors that do not count them."""
        if not self.is_plain(tensor):
            return 0
        try:
            return tensor._version
        except RuntimeError as error:
            if self.raised_by_handler(error):
                raise
            return 0


def _smallest(optimizer, tensors):
    """The smallest parameter that is updated, the last of several: a bias near the output."""
    best = None
    for group in optimizer.param_groups[:1] + optimizer.param_groups[-1:]:
        for parameter in filter(tensors.is_plain, group["params"][-64:]):
            if parameter.is_leaf and parameter.requires_grad and (best is None or parameter.numel() <= best.numel()):
                best = parameter
    return best
