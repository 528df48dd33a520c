"""Hooks around functions of libraries."""

import functools

from caulk import _bootstrap


def wrap(marks, owner, name, begin, end, is_pass=False):
    """Calls `begin(args, kwargs)` before a function of a library's and, where that gives a ticket other than `None`,
    `end(ticket, args, result, failure)` after it. Leaves no frame in tracebacks. Is the function a backward pass?"""
    original = vars(owner)[name]
    failed = functools.partial(marks.fail, f"hook around {name}")
    around = marks.agent.Around(original, begin, end, failed, is_pass)
    _bootstrap.replace(marks, owner, name, functools.update_wrapper(around, original))
