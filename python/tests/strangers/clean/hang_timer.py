"""A step that hangs for ten minutes is reported, with the batch it hung on."""

import sys
import threading
import torch
from torch import nn

PATIENCE = 600.0


def report_hang(where, batch):
    print(f"hangs at {where}, batch of shape {tuple(batch.shape)}, mean {batch.mean():.3f}", file=sys.stderr)


def watched_step(model, opt, batch, where):
    alarm = threading.Timer(PATIENCE, report_hang, args=(where, batch))
    alarm.daemon = True
    alarm.start()
    loss = (model(batch) - batch.mean(-1, keepdim=True)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    alarm.cancel()
    return loss.item()


def main(epochs=12, steps=10):
    torch.manual_seed(22)
    model = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(1, epochs + 1):
        losses = [watched_step(model, opt, torch.randn(128, 256), f"{epoch}/{step}") for step in range(steps)]
        print(f"epoch {epoch}: loss {sum(losses) / steps:.4f}", flush=True)


if __name__ == "__main__":
    main()
