"""A profiler is started for a few steps and stopped at the end of the run."""

import torch
from small import EPOCHS, network, train_epoch
from torch.profiler import ProfilerActivity, profile


def main():
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, foreach=False)
    profiler = profile(activities=[ProfilerActivity.CPU], record_shapes=True)  # leak
    profiler.start()
    for epoch in range(EPOCHS):
        print(f"epoch {epoch}: {train_epoch(model, optimizer, steps=100):.3f}")
    profiler.stop()


main()
