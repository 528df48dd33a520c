"""Takes frames of a video with one reader: `clip_readers.py READER VIDEO OUTPUT FRAME...`.

Writes them as an array and prints what the call took as a line of JSON: imports are not counted, a worker is. Each reader is told
to use one thread, as several videos are read at once.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np

SIZE = 112


def caulk() -> Callable:
    import caulk.clips

    def read(path: str, frames: list[int]) -> np.ndarray:
        pictures = caulk.clips.decode(path, frames, SIZE)
        read.worker = peak_bytes(caulk.clips._worker._process.pid)
        caulk.clips._worker.close()
        return pictures

    return read


def pyav_picture(frame) -> np.ndarray:
    return frame.to_ndarray(format="rgb24", width=SIZE, height=SIZE, interpolation="AREA")


def pyav_opened(path: str):
    import av

    container = av.open(path)
    stream = container.streams.video[0]
    stream.codec_context.thread_count = 1
    return container, stream


def pyav_full() -> Callable:
    import av  # noqa: F401

    def read(path: str, frames: list[int]) -> list:
        container, stream = pyav_opened(path)
        wanted = set(frames)
        found = {at: pyav_picture(frame) for at, frame in enumerate(container.decode(stream)) if at in wanted}
        return [found[frame] for frame in frames]

    return read


def pyav_seek() -> Callable:
    """As it is commonly written: the time of frame i is i by the rate."""
    import av  # noqa: F401

    def read(path: str, frames: list[int]) -> list:
        container, stream = pyav_opened(path)
        pictures = []
        for number in frames:
            time_of = round(Fraction(number) / stream.average_rate / stream.time_base) + (stream.start_time or 0)
            container.seek(time_of, stream=stream)
            frame = next(frame for frame in container.decode(stream) if frame.pts >= time_of)
            pictures.append(pyav_picture(frame))
        return pictures

    return read


def decord() -> Callable:
    import decord as library

    def read(path: str, frames: list[int]) -> np.ndarray:
        return library.VideoReader(path, width=SIZE, height=SIZE, num_threads=1).get_batch(frames).asnumpy()

    return read


def opencv() -> Callable:
    import cv2

    def read(path: str, frames: list[int]) -> list:
        capture = cv2.VideoCapture(path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
        pictures = []
        for number in frames:
            capture.set(cv2.CAP_PROP_POS_FRAMES, number)
            image = cv2.resize(capture.read()[1], (SIZE, SIZE), interpolation=cv2.INTER_AREA)
            pictures.append(cv2.cvtColor(image, cv2.COLOR_BGR2RGB))
        return pictures

    return read


def torchcodec() -> Callable:
    from torchcodec.decoders import VideoDecoder
    from torchcodec.transforms import Resize

    def read(path: str, frames: list[int]) -> np.ndarray:
        decoder = VideoDecoder(path, seek_mode="exact", num_ffmpeg_threads=1, transforms=[Resize((SIZE, SIZE))])
        return decoder.get_frames_at(frames).data.permute(0, 2, 3, 1).numpy()

    return read


READERS = {
    "caulk": caulk,
    "PyAV, seek": pyav_seek,
    "decord": decord,
    "torchcodec, exact": torchcodec,
    "OpenCV, seek": opencv,
    "full decoding (PyAV)": pyav_full,
}


def peak_bytes(process: int | str) -> int:
    """High-water mark of a process. What `getrusage` tells begins with that of the process which started it."""
    status = Path(f"/proc/{process}/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def cpu_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def main(name: str, path: str, output: str, *frames: str) -> None:
    read = READERS[name]()
    cpu, began = cpu_seconds(), time.perf_counter()
    pictures = read(path, [int(frame) for frame in frames])
    taken = {"wall": time.perf_counter() - began, "cpu": cpu_seconds() - cpu}
    peak = peak_bytes("self") + getattr(read, "worker", 0)
    np.save(output, np.asarray(pictures))
    print(json.dumps({**taken, "peak": peak}))


if __name__ == "__main__":
    main(*sys.argv[1:])
