"""Every epoch has a pool of its own, whose processes load a table each: `pools_closed.py`, or `pools_closed.py killed`."""

import multiprocessing
import os
import signal
import sys
import time

import caulk

EPOCHS = 8
TABLE = []


def load():
    TABLE.append(bytearray(20_000_000))  # loaded


def look(index):
    time.sleep(0.02)
    return TABLE[0][index]


def kill_all():
    for child in multiprocessing.active_children():
        os.kill(child.pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def main(killed):
    held = bytearray(30_000_000)
    for epoch in range(EPOCHS):
        with multiprocessing.get_context("fork").Pool(2, load) as pool:
            pool.map(look, range(8), chunksize=1)
            if killed and epoch == EPOCHS - 1:
                kill_all()
        # The processes have ended for a while when the epoch is over.
        time.sleep(0.5)
        caulk.epoch()
        print(f"epoch {epoch}: {len(held)}")


if __name__ == "__main__":
    main(sys.argv[1:] == ["killed"])
