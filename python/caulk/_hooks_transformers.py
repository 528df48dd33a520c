"""Hooks in Transformers: its `Trainer` says itself when epochs and evaluations begin and end."""

import functools


def install(module, marks):
    """Listens to the events that `transformers.trainer_callback.CallbackHandler` passes on."""
    steps = getattr(marks, "torch_steps", None)
    handler = getattr(module, "CallbackHandler", None)
    original = getattr(handler, "call_event", None)
    if steps is None or original is None:
        marks.note(
            "not-hooked",
            "this transformers has no CallbackHandler: epochs are told from its loops instead, and may be missed",
        )
        return
    guard = marks.guard

    def begin():
        steps.enter_framework("transformers")
        if guard is not None:
            from caulk import _guard

            guard.enter_framework(_guard.Transformers(guard))

    def end():
        steps.leave_framework()
        if guard is not None:
            guard.enter_framework(None)

    heard = {
        "on_train_begin": begin,
        "on_epoch_begin": steps.framework_epoch,
        "on_train_end": end,
        "on_evaluate": lambda: setattr(marks, "validated", True),
        "on_predict": lambda: setattr(marks, "testing", True),
    }

    @functools.wraps(original)
    def call_event(self, event, *args, **kwargs):
        if marks.alive and event in heard:
            with marks.guarded("Transformers hook"):
                heard[event]()
        control = original(self, event, *args, **kwargs)
        trainer = None if guard is None else guard.framework
        if marks.alive and getattr(trainer, "name", "") == "Transformers":
            with marks.guarded("guard"):
                if event == "on_step_end":
                    trainer.step_ended(control)
                elif event == "on_save":
                    trainer.has_saved(*args[:2])
        return control

    handler.call_event = call_event

    def restore():
        if vars(handler).get("call_event") is call_event:
            handler.call_event = original

    marks.undo.append(restore)
