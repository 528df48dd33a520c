"""Hook in shared memory: the program makes a segment.

It is there until somebody unlinks it, whether or not anything in the program still refers to it.
"""

import os

from caulk import _around


def _made(path, flags, mode=0):  # As `shm_open` has them.
    """Name of the segment that this call makes."""
    return path if flags & os.O_CREAT else None


def install(shared_memory, marks):
    """Installs the hook for `multiprocessing.shared_memory`, which has just been imported."""

    def makes(args, kwargs):
        return _made(*args, **kwargs) if marks.alive else None

    def made(name, _args, _descriptor, failure):
        if failure is None:
            marks.agent.made_segment(name)

    _around.wrap(marks, shared_memory._posixshmem, "shm_open", makes, made)
