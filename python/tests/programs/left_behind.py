"""A server that is started and forgotten, and a segment of shared memory that nobody removes."""

import os
import subprocess
import sys
import time


def start_server():
    # Outlives the program on the slowest machine, and keeps nobody waiting who reads what that prints.
    code = "import time; time.sleep(60)"
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def share(size):
    handle = os.open(f"/dev/shm/frames-{os.getpid()}", os.O_CREAT | os.O_RDWR)
    os.ftruncate(handle, size)
    return handle


def main():
    start_server()
    handle = share(3_000_000)
    time.sleep(3)
    os.close(handle)
    print("done")


main()
