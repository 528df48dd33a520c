"""A server that is started and forgotten, and a segment of shared memory that nobody removes."""

import os
import subprocess
import sys
import time


def start_server():
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(10)"])


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
