"""Videos that are no files of this machine: copied to a scratch folder, one at a time, by whatever fsspec knows.

Imported by `caulk_clips`, and run by `caulk clips` as a program of its own: it reads URLs, one a line, and answers each with a line of
JSON: where the copy lies, or why there is none. A copy lasts until the next one.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import queue
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import IO, Any

PREFIX = ".caulk-scratch-"
LOCK = "lock"
PART = 1 << 20
#: Room that is left on the disk, whatever the limit, in bytes.
SPARE = 256 << 20
#: What would keep a second copy, for longer than it is needed.
CACHES = re.compile(r"^((simplecache|filecache|blockcache)::)+")
URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*::)*[A-Za-z][A-Za-z0-9+.-]*://")
LOCAL = re.compile(r"(file|local)://(?!.*::)")


class FetchError(RuntimeError):
    """A video cannot be copied; the message says why."""


class NoPackage(FetchError):
    """None of this kind can be, as something is not installed; the message says what."""


def is_url(path: str) -> bool:
    """Whether a path is for fsspec."""
    return URL.match(path) is not None and LOCAL.match(path) is None


def file_of(path: str) -> str:
    """The file that a plain URL of this machine names; any other path as it is."""
    return LOCAL.sub("", path, count=1) if LOCAL.match(path) else path


class Scratch:
    """A folder of this process in `above`, which holds copies of at most `limit` bytes each, and goes with the process."""

    def __init__(self, above: str, limit: int) -> None:
        self.limit: int = limit
        self._numbers = itertools.count()
        os.makedirs(above, exist_ok=True)
        sweep(above)
        while True:
            self.folder: str = tempfile.mkdtemp(prefix=PREFIX, dir=above)
            # Somebody who sweeps may have come in between.
            with contextlib.suppress(OSError):
                self._lock: IO[str] = locked(self.folder)
                if os.path.exists(self._lock.name):
                    return

    def fetch(self, url: str) -> str:
        """Copies a video, and says where the copy lies."""
        name = url.split("::", 1)[0].split("?", 1)[0]
        ending = re.search(r"\.[A-Za-z0-9]{1,8}$", name)
        path = os.path.join(self.folder, f"{next(self._numbers)}{ending.group() if ending else ''}")
        try:
            with opened(url) as source, open(path, "wb") as copy:
                self._copy(source, copy)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(path)
            if isinstance(error, FetchError) or not isinstance(error, Exception):
                raise
            if isinstance(error, ImportError):
                raise NoPackage(f"{error}") from None
            raise FetchError(f"{type(error).__name__}: {error}") from error
        return path

    def _copy(self, source: Any, copy: IO[bytes]) -> None:
        self._check(getattr(source, "size", None) or 0, 0)
        done = 0
        while part := source.read(PART):
            done += len(part)
            self._check(done, len(part))
            copy.write(part)

    def _check(self, size: int, more: int) -> None:
        if size > self.limit:
            raise FetchError(f"it has more than the {self.limit / 1e6:g} MB of scratch for one video")
        if shutil.disk_usage(self.folder).free < SPARE + (more or size):
            raise FetchError(f"too little room is left in `{os.path.dirname(self.folder)}`")

    def close(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()


def locked(folder: str) -> IO[str]:
    """Holds a folder's lock for as long as the file is open."""
    lock = open(os.path.join(folder, LOCK), "a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        lock.close()
        raise
    return lock


def sweep(above: str) -> None:
    """Removes what processes that were killed have left there."""
    for name in os.listdir(above):
        if name.startswith(PREFIX):
            # Held by one that lives, or somebody else's.
            with contextlib.suppress(OSError), locked(os.path.join(above, name)):
                shutil.rmtree(os.path.join(above, name), ignore_errors=True)


@contextlib.contextmanager
def opened(url: str) -> Iterator[Any]:
    """A video to be read in order."""
    try:
        import fsspec
    except ImportError:
        hint = f"`{sys.executable} -m pip install fsspec`"
        raise NoPackage(f"fsspec, which fetches videos by URL, is not installed\nhint: {hint}") from None
    with fsspec.open(CACHES.sub("", url), "rb") as source:
        yield source


def serve(above: str, limit: int) -> None:
    """Answers until the input ends, then removes all that is left, in the middle of a copy, too."""
    # Packages may print; what they print is no answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        scratch = Scratch(above, limit)
    except OSError as error:
        print(json.dumps({"fatal": f"no scratch folder can be made: {error}"}), file=answers, flush=True)
        return
    urls: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=listen, args=(urls, scratch), daemon=True).start()
    previous = None
    while True:
        url = urls.get()
        if previous:
            os.unlink(previous)
        previous, answer = None, {}
        try:
            previous = answer["path"] = scratch.fetch(url)
        except NoPackage as error:
            answer["fatal"] = str(error)
        except FetchError as error:
            answer["failed"] = str(error)
        print(json.dumps(answer), file=answers, flush=True)


def listen(urls: queue.SimpleQueue[str], scratch: Scratch) -> None:
    for line in sys.stdin:
        urls.put(json.loads(line))
    scratch.close()
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
