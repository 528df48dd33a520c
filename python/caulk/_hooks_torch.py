"""Hooks in torch: optimizer steps, backward passes, batches of data loaders, `Module.eval`.

Installed once, right after the program has imported torch. Each hook is a thin function around one of torch's own,
invisible to `torch.compile`, and asks [`Steps`] what it means.
"""

import functools
import sys
import time
import types
import weakref
from _thread import get_ident

from caulk import _around, _backward, _bootstrap, _epochs, _hooks_cuda, _loaders, _loops, _moments

#: Backward passes without an optimizer step, where there are optimizers, until the passes count as steps themselves.
_PATIENCE = 256
#: Plain backward passes that are all attributed to their lines; of later ones, every so many.
_COUNT_ALL = 512
_COUNT_EVERY = 8
#: Optimizers that are remembered: some programs have one per parameter.
_MOST_OPTIMIZERS = 4096
#: Steps of other threads, and seconds, after which a thread that steps no more is not waited for.
_MOST_BESIDE = 16
_LONGEST_BESIDE = 0.5
#: In place of the site of a backward pass that is not looked at.
_PLAIN = object()
#: The same for one inside another.
_INNER = object()


class Steps:
    """Puts together what the hooks see: when a step is done, and whether an epoch has begun with it."""

    def __init__(self, marks, torch):
        self._marks = marks
        self._has_optimizers = lambda: _any_optimizer(torch)
        self.epochs = _epochs.Epochs(marks.agent.read_local)
        self.passes = _loaders.Passes()
        self.backwards = _backward.BackwardSites(marks)
        self.stale = _backward.StaleGradients(torch, marks.agent.raised_by_handler)
        #: A framework that says itself when epochs begin.
        self.framework = None
        self._forget()

    def forget(self):
        """In the child of a fork: nothing has been seen yet."""
        self.epochs.forget()
        self.epochs.deliveries = 0
        self.passes.forget()
        self.backwards.forget()
        self.stale.forget()
        self.framework = None
        self._forget()

    def _forget(self):
        self._thread = None
        #: Steps of other threads since the last one on that thread, and the most there have been between two of its.
        self._beside = self._most_beside = 0
        self._beside_since = 0.0
        self._optimizers = {}
        self._round = set()
        #: Those that have stepped in this epoch, and in the one before.
        self._active = set()
        self._before = set()
        #: The only optimizer there is, where nothing else has to be thought of.
        self._alone = None
        self._by_backward = None
        self._backwards = 0
        #: Optimizer steps and backward passes of all threads.
        self._stepped = self._passed = 0
        #: Graphs of CUDA that have captured some of these: steps, or passes alone?
        self._captured = weakref.WeakKeyDictionary()
        self._capturing = None
        self._counted = 0
        self._skipped = 0
        self._plain_calls = 0
        #: Plain backward passes that need not be looked at before the next one that is.
        self.plain_calls = 0
        self._looks = ()
        self._pending = 0
        self._loader_tells = False
        self._told = None

    # Frameworks.

    def enter_framework(self, name):
        """A training loop begins that tells its epochs."""
        if self.framework is None:
            self.framework = name
            self._pending = 0
            self._alone = None

    def leave_framework(self):
        """It has ended."""
        self.framework = None
        self._pending = 0

    def framework_epoch(self):
        """Its next epoch begins; the boundary is cut at the first step of it."""
        self._pending += 1

    # Optimizers.

    def optimizer_stepped(self, optimizer, frame):
        """`optimizer.step()`, called in `frame`, is done."""
        key = id(optimizer)
        self._stepped += 1
        if self._is_beside():
            self._marks.steps += 1
            return
        epochs = self.epochs.glance(frame) if key == self._alone else None
        if epochs is not None:
            if self.stale.stepped(optimizer):
                self._look_at_the_next()
            if epochs or self.passes.delivered:
                self._step(epochs)
            else:
                self._marks.step()
            return
        is_new = False
        if key not in self._round:
            is_new = self._meets(optimizer, key)
            if self._marks.agent.passes():
                # One of many optimizers, one per parameter, that step while the backward pass runs.
                self._round.add(key)
                if len(self._round) > 1:
                    return
        if self.stale.stepped(optimizer):
            self._look_at_the_next()
        self._event(key, is_new, frame)

    def _meets(self, optimizer, key):
        """An optimizer that has not stepped since the last step; is it one not seen before?"""
        if self._by_backward:
            self._start_over()
        self._by_backward = False
        known = self._optimizers
        reference = known.get(key)
        if reference is not None and reference() is optimizer:
            return False
        if len(known) >= _MOST_OPTIMIZERS:
            known.clear()
        known[key] = weakref.ref(optimizer)
        self.stale.meets(optimizer)
        self._look_at_the_next()
        return True

    def _has_one_optimizer(self):
        """Does one optimizer step alone, in this epoch and the one before? Then each of its steps is a step, however the
        loops around them nest.
        """
        if self._by_backward:
            return False
        stepping = [key for key in self._active | self._before if self._is_alive(key)]
        return len(stepping) == 1

    def _is_alive(self, key):
        reference = self._optimizers.get(key)
        return reference is not None and reference() is not None

    def _start_over(self):
        self.epochs.forget()
        self._round.clear()

    def _event(self, key, is_new, frame):
        """Something stepped: another step if it has stepped in this one before."""
        self._alone = None
        if self._marks.said_steps:
            return
        epochs = 0
        stepped = self._round
        again = key in stepped or not stepped
        if self.framework is None:
            epochs = self.epochs.observe(frame, key)
            if epochs:
                self._before, self._active = self._active, set()
            self._active.add(key)
            if self.epochs.same_step and not epochs and not self._has_one_optimizer():
                stepped.add(key)
                return
            # A new optimizer where another one has stepped before: the program has replaced it.
            again = again or epochs > 0 or (is_new and self.epochs.known_site)
        else:
            again = again or self._pending > 0
        if not again:
            stepped.add(key)
            return
        if len(stepped) != 1 or key not in stepped:
            stepped.clear()
            stepped.add(key)
        elif self.framework is None and self._by_backward is False and not self._marks.agent.passes():
            self._alone = key
        self._step(epochs)

    def _step(self, epochs):
        loader = self.passes.step() if self.passes.delivered else False
        if not epochs and not loader and self.framework is None:
            self._marks.step()
            return
        marks = self._marks
        source = "loop"
        if self.framework is not None:
            source = self.framework
            epochs, self._pending = self._pending, 0
        elif self._prefers_loader():
            source = "dataloader"
            epochs = int(loader)
            self._loader_tells = self._loader_tells or loader
        elif epochs and self._told and self._told[0] == "dataloader":
            epochs = 1
        if epochs and not marks.said_epochs and (marks.epoch >= 0 or self.framework is not None):
            self._tell(source)
        marks.step(epochs)

    def _prefers_loader(self):
        """Are passes over a loader a better witness than the loop, if there is one?"""
        turns = self.passes.turns
        loop = self.epochs.epoch_loop
        if not turns or loop is None:
            return turns > 0
        if not self._marks.agent.is_user_file(loop.code.co_filename):
            return True
        # Passes have told epochs already, and the loop is one around several of them: folds.
        return self._loader_tells and not loop.counts_epochs and turns >= 2 * loop.advances

    def _tell(self, source):
        """Reports the loop that counts the epochs, and that of the steps, once."""
        loop = self.epochs.epoch_loop if source == "loop" else None
        told = (source, loop)
        if self._told == told:
            return
        self._told = told
        marks = self._marks
        if loop is None:
            place = marks.agent.user_frame()
            if place is not None:
                marks.say_loop(_bootstrap.EPOCH, *place, "", source)
            return
        for unit, each in ((_bootstrap.EPOCH, loop), (_bootstrap.STEPS, self.epochs.step_loop)):
            if each is not None and not (unit == _bootstrap.STEPS and each is loop):
                file, function = _loops.where(each.code)
                marks.say_loop(unit, file, each.line, function, each.variable, source)

    def said_step(self, frame):
        """`caulk.step()` in `frame`: how many epochs have begun?"""
        self._alone = None
        if self._is_beside():
            return 0
        loader = self.passes.step() if self.passes.delivered else False
        epochs = self.epochs.observe(frame)
        return int(loader) if self._prefers_loader() else epochs

    # Backward passes.

    def backward_begins(self, retain_graph, create_graph):
        """A backward pass has begun; what it returns goes to [`Steps.backward_ends`]."""
        if self._marks.agent.passes() > 1:
            return _INNER
        self._look_at_the_next()
        self._passed += 1
        calls = 1
        if not retain_graph and not create_graph:
            calls, self._skipped = 1 + self._skipped, 0
        self._counted += 1
        if self._counted > _COUNT_ALL and self._by_backward is False and not self.stale.active:
            self._plain_calls = self.plain_calls = _COUNT_EVERY - 1
        site = self.backwards.called(sys._getframe(3), retain_graph, create_graph, calls)
        self._looks = self.stale.before() if self.stale.active else ()
        return site

    def _look_at_the_next(self):
        """Lets the next backward pass be looked at; those that were not are counted with the next plain one."""
        self._skipped += self._plain_calls - self.plain_calls
        self._plain_calls = self.plain_calls = 0

    def backward_ends(self, site, frame, completed):
        """The pass is over, with or without an exception."""
        if site is _INNER:
            return
        looks, self._looks = self._looks, ()
        if not completed:
            return
        if looks:
            self.stale.after(looks, site)
        self._backward_done(site, frame)

    def _backward_done(self, key, frame):
        """A pass is over, by `key`: a step if there is no optimizer that makes any."""
        if self._by_backward is False:
            return
        self._backwards += 1
        if self._by_backward is None:
            if self._backwards < _PATIENCE and self._has_optimizers():
                return
            self._by_backward = True
        self._count(key, frame)

    def _count(self, key, frame):
        if self._is_beside():
            self._marks.steps += 1
        else:
            self._event(key, False, frame)

    # Threads.

    def _is_beside(self):
        """Does another thread step here than the one on which boundaries are cut? Its steps count all the same.

        Boundaries are cut on the first thread that steps, until it has made none for much longer than ever before: it has
        ended, or another one continues the training.
        """
        thread = get_ident()
        if thread == self._thread:
            if self._beside:
                self._most_beside = max(self._most_beside, self._beside)
                self._beside = 0
            return False
        if self._thread is not None:
            if not self._beside:
                self._beside_since = time.monotonic()
            self._beside += 1
            waited = time.monotonic() - self._beside_since
            if self._beside <= _MOST_BESIDE + 4 * self._most_beside or waited < _LONGEST_BESIDE:
                return True
        self._thread = thread
        self._alone = None
        self._beside = self._most_beside = 0
        return False

    # CUDA graphs: what Python does is captured once, and seen no more when the graph is replayed.

    def capture_begins(self):
        """What comes until [`Steps.capture_ends`] is captured into a graph."""
        self._look_at_the_next()
        self._capturing = self._stepped, self._passed

    def capture_ends(self, graph):
        """The graph does what has been captured."""
        before, self._capturing = self._capturing, None
        if before is None or before == (self._stepped, self._passed):
            return
        self._captured[graph] = self._stepped != before[0]

    def replayed(self, graph, frame):
        """A captured graph has been replayed in `frame`: what it does is done once more."""
        steps = self._captured.get(graph)
        # Those of graphs within a backward pass are that pass.
        if steps is None or self._marks.agent.passes():
            return
        if steps:
            self._count(id(graph), frame)
        else:
            self._backward_done(id(graph), frame)

    # Data loaders.

    def batch(self, iterator, with_gradients):
        """A data loader hands out a batch."""
        self.passes.batch(iterator, with_gradients)
        if not self._marks.steps:
            self._marks.tick()
            self._marks.moment(_moments.BATCH)
        if with_gradients:
            self.epochs.deliveries += 1
        else:
            self._marks.validated = True

    def evaluates(self):
        """Modules are put into evaluation mode."""
        self._marks.validated = True


def install(torch, marks):
    """Installs the hooks in the module `torch`, which has just been imported."""
    steps = Steps(marks, torch)
    compiling = _compiling(torch)
    for hook in (_hook_optimizers, _hook_backward, _hook_loaders, _hook_eval):
        hook(torch, marks, steps, compiling)
    _hooks_cuda.install(torch, marks, steps, functools.partial(_hide, torch))
    marks.torch_steps = steps
    marks.moments = _moments.Moments(marks, torch)
    marks.undo.append(marks.moments.forget)
    marks.after_fork.append(marks.moments.forget)
    marks.before_cut.append(steps.backwards.flush)
    marks.after_fork.append(steps.forget)
    marks.detect = steps.said_step
    modules = [_bootstrap, _epochs, _hooks_cuda, _loops, _loaders, _moments, _backward, sys.modules[__name__]]
    if marks.guard is not None:
        modules.append(sys.modules["caulk._guard"])
    hide_from_compiler(torch, modules)


def _hook_optimizers(torch, marks, steps, compiling):
    def step_done(optimizer, _args, _kwargs):
        if marks.alive and not compiling():
            steps.optimizer_stepped(optimizer, sys._getframe(1))

    optimizers = sys.modules["torch.optim.optimizer"]  # `torch.optim` has no such attribute
    hook = marks.agent.Hook(step_done, functools.partial(marks.fail, "optimizer hook"))
    handle = optimizers.register_optimizer_step_post_hook(hook)
    marks.undo.append(handle.remove)
    _hide(torch, step_done)


def _hook_backward(torch, marks, steps, compiling):
    def begins(flags, args, kwargs):
        if not marks.alive or compiling():
            return None
        retain_graph, create_graph = flags(args, kwargs or {})
        if steps.plain_calls and not retain_graph and not create_graph:
            steps.plain_calls -= 1
            return _PLAIN
        return steps.backward_begins(retain_graph, create_graph)

    def ends(site, _args, _result, failure):
        if marks.waiting is not None and not marks.agent.passes():
            marks.catch_up()
        if site is not _PLAIN:
            steps.backward_ends(site, sys._getframe(1), failure is None)

    def engine_begins(args, kwargs):
        return begins(_engine_flags, args, kwargs)

    def begins_by_name(args, kwargs):
        return begins(_backward_flags, args, kwargs)

    autograd = torch.autograd
    if hasattr(autograd, "_engine_run_backward"):
        # Called by both `backward` and `grad` with (outputs, gradients, retain_graph, create_graph, ...).
        _around.wrap(marks, autograd, "_engine_run_backward", engine_begins, ends, is_pass=True)
    else:
        _around.wrap(marks, autograd, "backward", begins_by_name, ends, is_pass=True)
        _around.wrap(marks, autograd, "grad", begins_by_name, ends, is_pass=True)
    for function in (begins, ends, engine_begins, begins_by_name):
        _hide(torch, function)


def _engine_flags(args, _kwargs):
    return args[2:4]


def _backward_flags(args, kwargs):
    retain = kwargs.get("retain_graph", args[2] if len(args) > 2 else None)
    create = kwargs.get("create_graph", args[3] if len(args) > 3 else False)
    return create if retain is None else retain, create


def _hook_loaders(torch, marks, steps, compiling):
    iterators = sys.modules["torch.utils.data.dataloader"]._BaseDataLoaderIter
    with_gradients = torch.is_grad_enabled

    def asked(_args, _kwargs):
        if not marks.alive or compiling():
            return None
        if marks.guard is not None:
            marks.guard.between()
        return True

    def given(_ticket, args, _batch, failure):
        if failure is None:
            steps.batch(args[0], with_gradients())
        elif failure is StopIteration:
            steps.passes.end(args[0])

    for function in (asked, given):
        _hide(torch, function)
    _around.wrap(marks, iterators, "__next__", asked, given)


def _hook_eval(torch, marks, steps, compiling):
    module = torch.nn.Module
    original = module.eval

    # `Module.train` calls itself for every submodule; `eval` is called once, for the whole model. A function: the compiler
    # does not know objects that stand for methods.
    @functools.wraps(original)
    def eval(self):
        if marks.alive and not compiling():
            steps.evaluates()
        return original(self)

    _hide(torch, eval)
    _bootstrap.replace(marks, module, "eval", eval)


def _compiling(torch):
    """Tells whether `torch.compile` is looking at the code instead of running it: a constant for the compiler."""
    compiler = getattr(torch, "compiler", None)
    for name in ("is_dynamo_compiling", "is_compiling"):
        if hasattr(compiler, name):
            return getattr(compiler, name)
    return lambda: False


def _any_optimizer(torch):
    """Has an optimizer been made? The first one of a class leaves a mark on its `step`."""
    classes = [torch.optim.Optimizer]
    while classes:
        each = classes.pop()
        if getattr(vars(each).get("step"), "hooked", False):
            return True
        classes.extend(type.__subclasses__(each))
    return False


def hide_from_compiler(torch, modules):
    """Lets `torch.compile` run the functions of these modules as they are, without a look at them."""
    for module in modules:
        for thing in list(vars(module).values()):
            if getattr(thing, "__module__", None) != module.__name__:
                continue
            members = vars(thing).values() if isinstance(thing, type) else [thing]
            for member in members:
                member = getattr(member, "fget", None) or getattr(member, "__func__", member)
                if isinstance(member, types.FunctionType):
                    _hide(torch, member)


def _hide(torch, function):
    skip = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    skip = getattr(skip, "skip_code", None)
    if skip is not None:
        skip(function.__code__)
