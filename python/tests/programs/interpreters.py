"""Interpreters beside the main one, on its own thread: what they allocate is the program's, and nothing runs in them."""

import sys
import time

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

TEXT = """
kept = [bytearray(100_000) for _ in range(200)]
import json, random, re, sys, textwrap
print(sum(map(len, kept)), sorted(name for name in sys.modules if "caulk" in name), len(sys.meta_path))
"""

kept = []
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    other = interpreters.create()
    interpreters.run_string(other, TEXT)
    interpreters.destroy(other)
    for _ in range(200):
        kept.append(bytearray(10_000))  # leak
        work = [bytearray(100_000) for _ in range(20)]
