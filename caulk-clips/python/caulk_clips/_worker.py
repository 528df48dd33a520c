"""The worker ``caulk-clip`` as Python talks to it: a process per process, asked by lines of JSON through pipes."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import _fetch

#: Names another worker than the one that was installed with this package.
VARIABLE = "CAULK_CLIP"
NAME = "caulk-clip"


class DecodeError(RuntimeError):
    """A video, or frames of it, cannot be decoded; the message says why."""


def find() -> str:
    """Where the worker lies: beside ``caulk-clips``, in the environment's ``bin``."""
    above = Path(__file__).resolve().parents
    installed = [str(folder / "bin" / NAME) for folder in above]
    for place in [os.environ.get(VARIABLE), *installed, shutil.which(NAME)]:
        if place and os.access(place, os.X_OK) and os.path.isfile(place):
            return place
    raise DecodeError(f"`{NAME}` is not installed: install caulk-clips as a whole")


class Worker:
    """A worker that is started when it is first asked, in each process anew: what a fork leaves is not its child's."""

    def __init__(self) -> None:
        self._megabytes = 0
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        atexit.register(self.close)

    def ask(self, request: dict[str, Any], megabytes: int) -> tuple[dict[str, Any], bytes]:
        """The answer, and the bytes behind it, of a worker that may take so much memory."""
        if self._owner != os.getpid():
            # The lock may have been held by a thread that a fork has not brought along.
            self._lock, self._process, self._owner = threading.Lock(), None, os.getpid()
        with self._lock:
            if megabytes != self._megabytes:
                self.close()
            process = self._process or self._start(megabytes)
            try:
                return self._exchange(process, request)
            except BaseException as error:
                # Whatever is still in the pipe would be taken for the next answer.
                self._process = None
                process.kill()
                # A question that did not get through is still in its pipe.
                with contextlib.suppress(OSError), process:
                    pass
                process.wait()
                if isinstance(error, OSError | ValueError):
                    raise DecodeError(f"the decoder died (exit code {process.returncode})") from None
                raise

    def close(self) -> None:
        """Ends the worker, if this process has started one; the next request starts another."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            # Processes forked since hold its pipe open: it would wait for them, and they may wait for this one.
            process.kill()
            with process:
                pass

    def _start(self, megabytes: int) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([find(), str(megabytes)], stdin=pipe, stdout=pipe)
        self._megabytes = megabytes
        return self._process

    @staticmethod
    def _exchange(process: subprocess.Popen[bytes], request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        answer: dict[str, Any] = json.loads(process.stdout.readline())
        data = b""
        if pictures := answer.get("pictures"):
            data = process.stdout.read(pictures["bytes"])
            if len(data) != pictures["bytes"]:
                raise OSError("too few bytes")
        return answer, data


def cache_folder() -> str | None:
    """Where the worker keeps what packets of videos have told, as `caulk clips` does."""
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME", ""), ".cache")
    return os.path.join(caches, "caulk", "clips") if os.path.isabs(caches) else None


@contextlib.contextmanager
def here(path: str, scratch: str | os.PathLike[str] | None, limit: int) -> Iterator[tuple[str, bool]]:
    """A file of this machine: the video's own, or a copy for as long as it is used; and whether it is a copy."""
    if not _fetch.is_url(path):
        yield _fetch.file_of(path), False
        return
    try:
        folder = _fetch.Scratch(os.fspath(scratch or tempfile.gettempdir()), limit)
    except OSError as error:
        raise DecodeError(f"no scratch folder can be made: {error}") from None
    with contextlib.closing(folder):
        try:
            copy = folder.fetch(path)
        except _fetch.FetchError as error:
            raise DecodeError(f"`{path}` cannot be fetched: {error}") from error
        yield copy, True
