"""Hooks in Lightning: its trainer says itself when epochs, validation and the sanity check begin and end."""

from caulk import _around

_TRAINS = "on_train_epoch_start"


def install(module, marks):
    """Listens to the callback hooks that `lightning.pytorch.trainer.call` sends out."""
    steps = getattr(marks, "torch_steps", None)
    if steps is None or not hasattr(module, "_call_callback_hooks"):
        marks.note(marks.agent.note_no_callbacks, module.__name__, "callback hooks")
        return

    def heard(trainer, hook):
        if hook == "on_train_start":
            steps.enter_framework("lightning")
            guard(trainer)
        elif hook == _TRAINS:
            steps.framework_epoch()
        elif hook in ("on_train_end", "on_exception"):
            steps.leave_framework()
            guard(None)
        elif hook == "on_validation_start" and not trainer.sanity_checking:
            marks.validated = True
        elif hook == "on_test_start":
            marks.testing = True

    def guard(trainer):
        if marks.guard is not None:
            marks.guard.enter_framework(None if trainer is None else _guarded().Lightning(trainer, marks.guard.run))

    def begins(args, _kwargs):
        if not marks.alive:
            return None
        trainer, hook = args[:2]
        if hook in _HEARD:
            heard(trainer, hook)
        # After the callbacks: they, too, have state that is saved.
        return marks.guard if hook == "on_train_batch_end" else None

    def ends(guard, _args, _result, failure):
        if failure is None:
            guard.framework_is_between()

    _around.wrap(marks, module, "_call_callback_hooks", begins, ends)


def _guarded():
    from caulk import _guard

    return _guard


_HEARD = frozenset(["on_train_start", _TRAINS, "on_train_end", "on_exception", "on_validation_start", "on_test_start"])
