"""`caulk report --format pprof`: a profile as its readers see it, without one of them: the wire format has two forms."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections import defaultdict
from pathlib import Path

from harness import CAULK, program_environment

PROGRAM = """\
import caulk


def load_model():
    return bytearray(60 << 20)


def gather(kept):
    kept.append(bytearray(8 << 20))


def augment():
    return len(bytearray(16 << 20))


def main():
    model, kept = load_model(), []
    for epoch in range(10):
        gather(kept)
        augment()
        caulk.epoch()


main()
"""
MB = 1 << 20


def number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data: bytes) -> dict[int, list]:
    """The fields of a message: numbers, and the bytes of texts and messages."""
    found: dict[int, list] = defaultdict(list)
    at = 0
    while at < len(data):
        tag, at = number(data, at)
        assert tag & 7 in (0, 2)
        value, at = number(data, at)
        if tag & 7 == 0:
            found[tag >> 3].append(value)
        else:
            found[tag >> 3].append(data[at : at + value])
            at += value
    return found


def numbers(data: bytes) -> list[int]:
    values, at = [], 0
    while at < len(data):
        value, at = number(data, at)
        values.append(value)
    return values


def caulk(*words: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    command = [str(CAULK), "report", str(folder), *words]
    return subprocess.run(command, capture_output=True, check=True, env=program_environment())


def test_functions_have_the_memory_that_they_hold(run_caulk, tmp_path: Path):
    folder = run_caulk(PROGRAM).folder / "run"
    caulk("--format", "pprof", "--output", str(tmp_path / "heap.pb.gz"), folder=folder)
    packed = (tmp_path / "heap.pb.gz").read_bytes()
    assert packed == caulk("--format", "pprof", folder=folder).stdout
    profile = fields(gzip.decompress(packed))
    texts = [text.decode() for text in profile[6]]
    functions = {row[1][0]: texts[row[2][0]] for row in map(fields, profile[5])}
    places = {row[1][0]: fields(row[4][0]) for row in map(fields, profile[4])}
    held: dict[str, int] = defaultdict(int)
    grown: dict[str, int] = defaultdict(int)
    allocated: dict[str, int] = defaultdict(int)
    total = 0
    for sample in map(fields, profile[2]):
        live, growth, ever = numbers(sample[2][0])
        total += live
        innermost = numbers(sample[1][0])[0]
        name = functions[places[innermost][1][0]]
        held[name] += live
        grown[name] += growth
        allocated[name] += ever
        label = fields(sample[3][0])
        assert (texts[label[1][0]], texts[label[2][0]]) == ("process", "main process")
    assert 55 * MB < held["load_model"] < 65 * MB
    assert 72 * MB < held["gather"] < 88 * MB
    assert grown["load_model"] == 0 and 7 * MB < grown["gather"] < 9 * MB
    assert held["augment"] == 0 and 145 * MB < allocated["augment"] < 175 * MB, "given back at once"
    assert held["gather"] <= allocated["gather"] < 88 * MB
    assert [texts[fields(kind)[1][0]] for kind in profile[1]] == ["inuse_space", "inuse_growth", "alloc_space"]
    lines = json.loads(caulk("--lines", "--format", "json", folder=folder).stdout)
    live = lines["profiles"][0]["live"]["bytes"]
    assert abs(total - live) <= len(profile[2])
