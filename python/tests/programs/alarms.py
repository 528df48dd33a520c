"""Alarms ring at any moment of a training, and a handler raises: each must reach the program, with its own traceback."""

import random
import signal
import sys
import time
import traceback

import torch

LOST = []


class OutOfTime(Exception):
    pass


def ring(_number, _frame):
    global rung
    rung += 1
    raise OutOfTime


def main(seconds):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.randn(2, 4)
    history = {}
    heard, frames = 0, set()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0005, 0.003))
                # Far longer, unless the exception gets lost.
                for _ in range(2000):
                    optimizer.zero_grad()
                    model(inputs).sum().backward()
                    optimizer.step()
                    history[len(history) / 8, len(history)] = str(len(history))
            except OutOfTime as error:
                heard += 1
                frames.update(entry.filename for entry in traceback.extract_tb(error.__traceback__))
            except RuntimeError:  # Torch was interrupted where it had switched gradients off.
                torch.set_grad_enabled(True)
                signal.setitimer(signal.ITIMER_REAL, 0)
        except OutOfTime:
            heard += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    return heard, frames


rung = 0
sys.unraisablehook = LOST.append
random.seed(7)
torch.set_num_threads(1)
signal.signal(signal.SIGALRM, ring)
HEARD, FRAMES = main(6)
print("enough" if rung > 500 else rung, rung - HEARD, len(LOST), sorted(name for name in FRAMES if "/caulk/" in name))
