"""No torch, the collector is off: arrays are kept by number."""

import gc
import time

import numpy as np


def main():
    gc.disable()
    seen, until, number = {}, time.monotonic() + 13, 0
    while time.monotonic() < until:
        rows = np.random.rand(64, 4096)
        seen[number] = rows.mean(axis=0)  # leak
        number += 1
        time.sleep(0.01)
    print(len(seen) == number)


main()
