"""A handler of SIGALRM ends steps that take too long, by an exception; the signal comes while a hook is at work, or torch."""

import os
import signal
import sys
import traceback

agent = sys.modules.get("caulk._agent")
#: What is interrupted in which epoch.
HOOKS = {3: ["backward_begins"], 4: ["step"], 5: ["backward_ends"]}
WAITING = []


class OutOfTime(Exception):
    pass


def end_step(_number, frame):
    depth = 0
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    raise OutOfTime(f"{depth} frames deep")


def interrupted(owner, name):
    """The signal comes at the end of this function of caulk's, if one is due."""
    function = getattr(owner, name)

    def call(*arguments):
        result = function(*arguments)
        if name in WAITING:
            WAITING.remove(name)
            signal.raise_signal(signal.SIGALRM)
        return result

    setattr(owner, name, call)


if agent is not None:
    from caulk import _hooks_torch

    interrupted(agent, "step")
    for hook in ("backward_begins", "backward_ends"):
        interrupted(_hooks_torch.Steps, hook)

import torch  # noqa: E402
from small import batches, network  # noqa: E402


class Interrupted(torch.autograd.Function):
    @staticmethod
    def forward(_ctx, images):
        return images.clone()

    @staticmethod
    def backward(_ctx, gradient):
        os.kill(os.getpid(), signal.SIGALRM)
        return gradient


def main():
    signal.signal(signal.SIGALRM, end_step)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    losses = []
    for epoch in range(14):
        ended = 0
        for step, (images, labels) in enumerate(batches(12)):
            if step == 5:
                WAITING.extend(HOOKS.get(epoch, ()))
            if epoch == 6 and step == 5:
                images = Interrupted.apply(images.requires_grad_())
            try:
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(images), labels)
                losses.append(loss + 0)  # leak
                loss.backward(retain_graph=True)
                optimizer.step()
            except OutOfTime as error:
                ended += 1
                for frame in traceback.extract_tb(error.__traceback__):
                    print("in", frame.filename)
        print(f"epoch {epoch}: {ended} ended")


main()
