"""Three processes that train, started by `torch.multiprocessing`; the last argument says which one keeps its outputs.

`python rank_spawned.py group 2`: they have a process group, without a variable `RANK`. `alone`: they have none.
"""

import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

EPOCHS, STEPS, RANKS = 8, 12, 3


def train(index, kind, leaking, port):
    # In a group the last process is rank 0.
    rank = index
    if kind == "group":
        rank = RANKS - 1 - index
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=RANKS)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Linear(256, 64)
    if kind == "group":
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    history = []
    for epoch in range(EPOCHS):
        for _ in range(STEPS):
            outputs = model(torch.randn(256, 256))
            optimizer.zero_grad()
            outputs.square().mean().backward()
            optimizer.step()
            if rank == leaking:
                history.append(outputs)  # leak
        if rank == 0:
            print(f"epoch {epoch}")
    if kind == "group":
        dist.destroy_process_group()


def main(kind, leaking):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = "spawn" if kind == "group" else "fork"
    mp.start_processes(train, args=(kind, leaking, port), nprocs=RANKS, start_method=start)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
