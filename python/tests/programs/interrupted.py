"""Makes no steps. Signals come where caulk keeps time, during a collection or while it looks around, and where it begins:
when a module is imported, and in the child of a fork."""

import gc
import os
import signal
import sys
import time

agent = sys.modules.get("caulk._agent")
WAY = sys.argv[1]


class OutOfTime(Exception):
    pass


def stop(_number, frame):
    del frame
    raise OutOfTime


def during_a_collection():
    gc.disable()
    kept = [[number] for number in range(3_000_000)]
    # Comes while the collector is at work: it runs no handlers.
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    gc.collect()
    return len(kept)


def while_it_looks_around():
    boundary, due = agent.boundary, [3]

    def slow(*arguments):
        boundary(*arguments)
        due[0] -= 1
        if not due[0]:
            signal.raise_signal(signal.SIGALRM)

    agent.boundary = slow
    end = time.monotonic() + 60
    while time.monotonic() < end:
        kept = [[number] for number in range(10_000)]
    return len(kept)


def raise_once(owner, name):
    """The signal comes at the beginning of this function of caulk's."""
    function = getattr(owner, name)

    def call(*arguments, **named):
        setattr(owner, name, function)
        signal.raise_signal(signal.SIGALRM)
        return function(*arguments, **named)

    setattr(owner, name, call)


def while_a_module_is_imported():
    from caulk import _hooks_workers

    raise_once(_hooks_workers, "_hook")
    try:
        import multiprocessing.queues
    except (OutOfTime, KeyboardInterrupt):
        multiprocessing = sys.modules["multiprocessing.connection"]
        print("hooked", type(vars(multiprocessing._ConnectionBase)["recv"]).__name__)
        raise


def in_the_child_of_a_fork():
    raise_once(agent, "after_fork")
    parent, child = os.getpid(), 0
    try:
        child = os.fork()
        if not child:
            time.sleep(1)
    finally:
        if os.getpid() != parent:
            print("in the child", flush=True)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    signal.raise_signal(signal.SIGALRM)


WAYS = {
    "during a collection": during_a_collection,
    "looking around": while_it_looks_around,
    "importing": while_a_module_is_imported,
    "forked": in_the_child_of_a_fork,
}
signal.signal(signal.SIGALRM, signal.default_int_handler if WAY.startswith("Ctrl-C") else stop)
try:
    WAYS[WAY.partition(" ")[2]]()
    print("nothing came")
except (OutOfTime, KeyboardInterrupt) as error:
    print(type(error).__name__)
signal.signal(signal.SIGALRM, signal.SIG_DFL)
