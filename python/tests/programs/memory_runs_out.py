"""A list takes four megabytes at a time until the limit of the process's address space."""

import resource
import time

resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))
kept = []
while True:
    kept.append(bytearray(4 << 20))  # leak
    time.sleep(0.02)
