"""Two ranks on one machine, of which those named as arguments keep their outputs: run it with `torch.distributed.run`."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

EPOCHS, STEPS = 8, 12


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(256, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    history = []
    for epoch in range(EPOCHS):
        for _ in range(STEPS):
            outputs = model(torch.randn(256, 256))
            optimizer.zero_grad()
            outputs.square().mean().backward()
            optimizer.step()
            if str(rank) in sys.argv[1:]:
                history.append(outputs)  # leak
        if rank == 0:
            print(f"epoch {epoch}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
