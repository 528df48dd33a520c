"""A pool whose processes keep native memory, made after many processes that came and went: `pool_after_forks.py FORKS`."""

import ctypes
import multiprocessing
import os
import sys

import caulk

EPOCHS, TASKS = 8, 24
BUFFER = 1_000_000

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p


def decode(index):
    address = library.malloc(ctypes.c_size_t(BUFFER))  # leak
    ctypes.memset(address, index % 7, BUFFER)
    return index


def come_and_go():
    child = os.fork()
    if child == 0:
        held = [bytearray(1_000_000) for _ in range(8)]
        os._exit(len(held) - 8)
    os.waitpid(child, 0)


def main(forks):
    for _ in range(forks):
        come_and_go()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for epoch in range(EPOCHS):
            pool.map(decode, range(TASKS), chunksize=1)
            caulk.epoch()
            print(f"epoch {epoch}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
