"""Hooks around functions of libraries."""

import functools

from caulk import _bootstrap


def wrap(marks, owner, name, begin, end):
    """Calls `begin(args, kwargs)` before a function of a library's and, where that gives a ticket other than `None`,
    `end(ticket, args, result, failure)` after it. Leaves no frame in tracebacks."""
    original = vars(owner)[name]
    around = marks.agent.Around(original, begin, end, functools.partial(marks.fail, f"hook around {name}"))
    _bootstrap.replace(marks, owner, name, functools.update_wrapper(around, original))
