"""Keeps every activation, saves its state after each epoch and goes on from there; may set itself a limit of memory."""

import argparse
import os
import resource

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--resume")
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--limit-mb", type=int, default=0, help="headroom of data above what the program needs")
args = parser.parse_args()

model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
first = 0
if args.resume:
    state = torch.load(args.resume)
    model.load_state_dict(state["model"])
    first = state["epoch"]
    print(f"goes on after epoch {first}", flush=True)

kept = []


def step():
    batch = torch.randn(512, 256)
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return batch


def data_in_use():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmData:")) * 1024


step()
if args.limit_mb:
    limit = data_in_use() + args.limit_mb * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
for epoch in range(first, args.epochs):
    for _ in range(100):
        kept.append(step())
    path = f"epoch-{epoch + 1}.pt"
    torch.save({"model": model.state_dict(), "epoch": epoch + 1}, path + ".tmp")
    os.replace(path + ".tmp", path)
    print(f"epoch {epoch + 1}", flush=True)
print("done", flush=True)
