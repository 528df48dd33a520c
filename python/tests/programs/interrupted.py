"""Makes no steps. Signals come where caulk keeps time: during a collection, or while it looks around."""

import gc
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


signal.signal(signal.SIGALRM, signal.default_int_handler if WAY.startswith("Ctrl-C") else stop)
try:
    during_a_collection() if WAY.endswith("collection") else while_it_looks_around()
    print("nothing came")
except (OutOfTime, KeyboardInterrupt) as error:
    print(type(error).__name__)
signal.signal(signal.SIGALRM, signal.SIG_DFL)
