"""Stands in for the compiled `caulk._agent`: writes down what it is told, one line of Python per call."""

import os
import sys

_LOG = os.environ.get("TEST_AGENT_LOG", "")
_FAIL = os.environ.get("TEST_AGENT_FAIL", "")
_foreign = ()
_pid = None
_asked = []
_passes = 0


def _write(call, *arguments):
    if call == _FAIL:
        raise RuntimeError(f"{call} fails on purpose")
    file = os.open(_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, f"{[os.getpid(), call, *arguments]!r}\n".encode())
    os.close(file)


def start(settings, argv, rank, worker):
    """As the agent's; without a log there is no supervisor."""
    if not _LOG:
        return False
    _write("start", settings, argv, rank, worker)
    return True


def is_main_interpreter():
    """As the agent's."""
    return True


def clock(call):
    """There is no sampler."""


def Collected(call):
    """As the agent's, without its care for exceptions."""
    return lambda phase, info: phase == "stop" and call(info)


def raise_later(error):
    """As the agent's, of what the program need not see."""
    return False


def raised_by_handler(error, programs=False):
    """As the agent's, for handlers that name the argument as everybody does."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_locals.get("frame", trace) is not trace.tb_frame.f_back:
        trace = trace.tb_next
    return trace is not None


class Around:
    """As the agent's, but with a frame."""

    def __init__(self, original, begin, end, failed, is_pass):
        self.original, self.begin, self.end, self.failed = original, begin, end, failed
        self.is_pass = is_pass

    def __call__(self, *args, **kwargs):
        """Calls the three in order."""
        global _passes
        _passes += self.is_pass
        ticket = None
        try:
            ticket = _heard(self.failed, self.begin, args, kwargs)
            result = self.original(*args, **kwargs)
        except BaseException as error:
            _passes -= self.is_pass
            if ticket is not None:
                _heard(self.failed, self.end, ticket, args, None, type(error))
            raise
        _passes -= self.is_pass
        if ticket is not None:
            _heard(self.failed, self.end, ticket, args, result, None)
        return result

    def __get__(self, instance, owner=None):
        """Bound as a function is."""
        import types  # Not before a hook is there: programs would see it among their modules.

        return self if instance is None else types.MethodType(self, instance)


def Hook(call, failed):
    """As the agent's, but with frames where something is to fail."""
    return (lambda *arguments: _heard(failed, call, *arguments)) if _FAIL else call


def _heard(failed, hook, *arguments):
    try:
        return hook(*arguments)
    except Exception as error:
        if raised_by_handler(error):
            raise
        failed(error)
        return None


def passes():
    """As the agent's."""
    return _passes


def configure_user_files(prefixes):
    """As the agent's."""
    global _foreign
    _foreign = tuple(prefixes)


def is_user_file(filename):
    """As the agent's."""
    installed = "site-packages" in filename or "dist-packages" in filename
    return not installed and not filename.startswith(_foreign) and not filename.startswith("<frozen")


def read_local(frame, name):
    """As the agent's, but through `f_locals`."""
    return frame.f_locals[name]


def user_frame():
    """As the agent's."""
    frame = sys._getframe(1)
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def progress_of(pid):
    """As the agent's; the test says what there is to tell, one line for each call, the last for ever."""
    lines = os.environ.get("TEST_AGENT_PROGRESS", "").split(";")
    if not lines[0]:
        return None
    _asked.append(pid)
    return tuple(map(int, lines[min(len(_asked), len(lines)) - 1].split(",")))


def _recorder(call):
    def record(*arguments):
        _write(call, *arguments)

    return record


boundary = _recorder("boundary")
loop = _recorder("loop")
backward_site = _recorder("backward_site")
note_hook_failed = _recorder("note_hook_failed")
note_no_callbacks = _recorder("note_no_callbacks")
note_not_watched = _recorder("note_not_watched")
gpu_refused = _recorder("gpu_refused")
bye = _recorder("bye")
stop = _recorder("stop")
after_fork = _recorder("after_fork")


def step(steps):
    """As the agent's: called often, so not written down."""
    if _FAIL == "step":
        raise RuntimeError("step fails on purpose")
