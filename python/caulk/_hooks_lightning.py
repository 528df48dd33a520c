"""Hooks in Lightning: its trainer says itself when epochs, validation and the sanity check begin and end."""

import functools

_TRAINS = "on_train_epoch_start"


def install(module, marks):
    """Listens to the callback hooks that `lightning.pytorch.trainer.call` sends out."""
    steps = getattr(marks, "torch_steps", None)
    original = getattr(module, "_call_callback_hooks", None)
    if steps is None or original is None:
        marks.note(
            "not-hooked",
            f"this {module.__name__} has no callback hooks: epochs are told from its loops instead, and may be missed",
        )
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

    @functools.wraps(original)
    def _call_callback_hooks(trainer, hook_name, *args, **kwargs):
        if marks.alive and hook_name in _HEARD:
            with marks.guarded("Lightning hook"):
                heard(trainer, hook_name)
        result = original(trainer, hook_name, *args, **kwargs)
        # After the callbacks: they, too, have state that is saved.
        if marks.guard is not None and marks.alive and hook_name == "on_train_batch_end":
            with marks.guarded("guard"):
                marks.guard.framework_is_between()
        return result

    module._call_callback_hooks = _call_callback_hooks

    def restore():
        if module._call_callback_hooks is _call_callback_hooks:
            module._call_callback_hooks = original

    marks.undo.append(restore)


def _guarded():
    from caulk import _guard

    return _guard


_HEARD = frozenset(["on_train_start", _TRAINS, "on_train_end", "on_exception", "on_validation_start", "on_test_start"])
