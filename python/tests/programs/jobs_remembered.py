"""Background jobs of asyncio are held by a set, so that they are not collected; nobody takes those out that are done."""

import asyncio

import torch
from small import EPOCHS, network, train_epoch

jobs = set()


async def summarize(size):
    await asyncio.sleep(0)
    return torch.randn(size).cumsum(0)


async def main():
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        loss = train_epoch(model, optimizer)
        for _ in range(10):
            job = asyncio.create_task(summarize(50_000))
            jobs.add(job)  # leak
        await asyncio.sleep(0.01)
        print(f"epoch {epoch}: {loss:.3f}")


if __name__ == "__main__":
    asyncio.run(main())
