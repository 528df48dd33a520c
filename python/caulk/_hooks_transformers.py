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
    heard = {
        "on_train_begin": lambda: steps.enter_framework("transformers"),
        "on_epoch_begin": steps.framework_epoch,
        "on_train_end": steps.leave_framework,
        "on_evaluate": lambda: setattr(marks, "validated", True),
        "on_predict": lambda: setattr(marks, "testing", True),
    }

    @functools.wraps(original)
    def call_event(self, event, *args, **kwargs):
        if marks.alive and event in heard:
            with marks.guarded("Transformers hook"):
                heard[event]()
        return original(self, event, *args, **kwargs)

    handler.call_event = call_event

    def restore():
        if vars(handler).get("call_event") is call_event:
            handler.call_event = original

    marks.undo.append(restore)
