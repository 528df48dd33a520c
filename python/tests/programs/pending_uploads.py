"""Tasks of asyncio wait for a server that never becomes ready, each with its payload in a local variable."""

import asyncio

import torch
from small import EPOCHS, STEPS, network, train_epoch


class Uploader:
    def __init__(self):
        self.ready = asyncio.Event()
        self.pending = set()
        self.sent = 0

    async def upload(self, payload):
        await self.ready.wait()
        self.sent += payload.numel()

    def submit(self, payload):
        task = asyncio.create_task(self.upload(payload))
        self.pending.add(task)  # leak
        task.add_done_callback(self.pending.discard)


async def main():
    model, uploader = network(), Uploader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(EPOCHS):
        for _ in range(STEPS):
            uploader.submit(torch.rand(64, 1024))
            await asyncio.sleep(0)
        print(f"epoch {epoch}: {train_epoch(model, optimizer):.3f}")


asyncio.run(main())
