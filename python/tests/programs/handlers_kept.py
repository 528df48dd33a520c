"""A handler with a table of its own for each epoch, and none is ever taken away."""

import logging

import torch
from small import EPOCHS, network, train_epoch

log = logging.getLogger("training")
log.setLevel(logging.INFO)
log.propagate = False


class Summary(logging.Handler):
    """Adds up what its epoch logs."""

    def __init__(self):
        super().__init__()
        self.table = torch.zeros(300_000)

    def emit(self, record):
        self.table += record.args[0]


def start():
    log.addHandler(Summary())  # leak


model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for epoch in range(EPOCHS):
    start()
    loss = train_epoch(model, optimizer)
    log.info("loss %f", loss)
    print(f"epoch {epoch}: {loss:.3f}")
