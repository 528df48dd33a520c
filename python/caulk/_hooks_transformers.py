"""Hooks in Transformers: its `Trainer` says itself when epochs and evaluations begin and end."""

from caulk import _around


def install(module, marks):
    """Listens to the events that `transformers.trainer_callback.CallbackHandler` passes on."""
    steps = getattr(marks, "torch_steps", None)
    handler = getattr(module, "CallbackHandler", None)
    if steps is None or not hasattr(handler, "call_event"):
        marks.note(marks.agent.note_no_callbacks, "transformers", "CallbackHandler")
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

    def begins(args, _kwargs):
        if not marks.alive:
            return None
        event = args[1]
        if event in heard:
            heard[event]()
        trainer = None if guard is None else guard.framework
        return trainer if getattr(trainer, "name", "") == "Transformers" else None

    def ends(trainer, args, control, failure):
        event = args[1]
        if failure is None and event == "on_step_end":
            trainer.step_ended(control)
        elif failure is None and event == "on_save":
            trainer.has_saved(*args[2:4])

    _around.wrap(marks, handler, "call_event", begins, ends)
