"""Hook in `torch.utils.data.dataloader` for `caulk run --apply`: loaders are made with the settings of a plan.

Only what the plan makes smaller is changed. Loaders with samplers of their own, over iterable data sets, or in ranks of a
distributed job are left alone, unless the user wants them changed, too. torch's samplers in order and at random are what
`shuffle` stands for; frameworks pass them.
"""

import functools
import os
import weakref

from caulk import _bootstrap

#: Loaders of which is told.
_TOLD = 8


def parse(settings):
    """What is to be applied: ``apply=num_workers:2,pin_memory:0`` among the settings; `None` where nothing is."""
    for setting in settings.split(";"):
        key, _, value = setting.partition("=")
        if key == "apply":
            pairs = (pair.partition(":") for pair in value.split(",") if pair)
            return {name: int(number) for name, _, number in pairs}
    return None


class Plan:
    """Settings for loaders, and what has been said of them."""

    def __init__(self, wanted, module, marks):
        self._everywhere = wanted.pop("everywhere", 0)
        self._wanted = wanted
        self._random, self._in_order = module.RandomSampler, module.SequentialSampler
        self._in_batches, self._batches = module.BatchSampler, weakref.WeakValueDictionary()
        self._marks = marks
        self._told = set()

    def apply(self, arguments, iterable):
        """The arguments of a loader that is about to be made, changed in place; says what was changed."""
        if id(arguments.get("batch_sampler")) in self._batches:
            # Accelerate makes a loader again from one that has what the plan says.
            return
        reason = self._hands_off(arguments, iterable)
        if reason is not None and not self._everywhere:
            self._tell(self._marks.agent.note_loader_kept, reason)
            return
        changed = [change for name in self._wanted for change in self._set(name, arguments)]
        if changed:
            self._tell(self._marks.agent.note_loader_changed, changed)

    def remember(self, loader):
        """A loader has been made."""
        batches = vars(loader).get("batch_sampler")
        if type(batches) is self._in_batches:
            self._batches[id(batches)] = batches

    def _hands_off(self, arguments, iterable):
        reasons = self._marks.agent.LoaderKept
        if int(os.environ.get("WORLD_SIZE") or 1) > 1:
            return reasons.Rank
        if iterable:
            return reasons.Iterable
        if self._has_own_sampler(arguments):
            return reasons.OwnSampler
        return None

    def _has_own_sampler(self, arguments):
        usual = (type(None), self._random, self._in_order)
        return type(arguments.get("sampler")) not in usual or arguments.get("batch_sampler") is not None

    def _set(self, name, arguments):
        new = self._wanted[name]
        if name in ("training_batch", "validation_batch"):
            # Shuffled data is trained on; a batch sampler makes its own batches.
            shuffled = bool(arguments.get("shuffle")) or type(arguments.get("sampler")) is self._random
            if shuffled != (name == "training_batch") or arguments.get("batch_sampler") is not None:
                return
            name, old = "batch_size", arguments.get("batch_size", 1)
        else:
            old = arguments.get(name) or 0
            if name == "prefetch_factor":
                old = old or (2 if arguments.get("num_workers") else 0)
        if old is None or old <= new:
            return
        arguments[name] = bool(new) if isinstance(old, bool) else new
        if name == "num_workers" and new == 0:
            # What only makes sense with workers is refused without them.
            for other in ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout"):
                arguments.pop(other, None)
        yield name, str(old), str(arguments[name])

    def _tell(self, note, fact):
        place = self._marks.agent.user_frame()
        place = (os.path.basename(_bootstrap.plain(place[0])), place[1]) if place else ("", 0)
        known = (*place, str(fact))
        if known not in self._told and len(self._told) < _TOLD:
            self._told.add(known)
            self._marks.note(note, *place, fact)


def install(module, marks):
    """Installs the hook in `torch.utils.data.dataloader`, which has just been imported."""
    wanted = parse(marks.settings)
    if not wanted:
        return
    plan = Plan(wanted, module, marks)
    original = module.DataLoader.__init__
    code = original.__code__
    names = code.co_varnames[1 : code.co_argcount]

    @functools.wraps(original)
    def made(self, *args, **kwargs):
        if marks.alive and len(args) <= len(names):
            arguments = {**dict(zip(names, args)), **kwargs}
            try:
                plan.apply(arguments, isinstance(arguments.get("dataset"), module.IterableDataset))
            except Exception as error:
                if marks.fail("apply", error):
                    raise
            else:
                original(self, **arguments)
                return plan.remember(self)
        return original(self, *args, **kwargs)

    _bootstrap.replace(marks, module.DataLoader, "__init__", made)
