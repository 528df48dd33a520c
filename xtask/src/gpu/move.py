"""Runs a program with its tensors on another device: `python move.py DEVICE PROGRAM [ARGUMENTS...]`.

What the program makes is made on the device, and what it takes from numpy is copied there. Programs that name a device, or
work in child processes, do not bear that; they end with an error of their own, and are told as what cannot be moved.
"""

from __future__ import annotations

import os
import runpy
import sys

import torch


def move_to(device: str) -> None:
    torch.set_default_device(device)
    from_numpy = torch.from_numpy
    torch.from_numpy = lambda array: from_numpy(array).to(device)
    # A sampler of torch's own draws with a generator of the host's.
    permutation = torch.randperm

    def randperm(*sizes, generator=None, **options):
        if generator is not None:
            options.setdefault("device", generator.device)
        return permutation(*sizes, generator=generator, **options)

    torch.randperm = randperm


if __name__ == "__main__":
    _, device, program, *arguments = sys.argv
    sys.argv = [program, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    move_to(device)
    runpy.run_path(program, run_name="__main__")
