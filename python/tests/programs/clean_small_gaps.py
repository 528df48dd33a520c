"""Records of another length each epoch, of which a few stay in the place of older ones: they keep the arenas. No leak."""

import torch
from small import EPOCHS, network, train_epoch

EPOCHS += 4
RECORDS, STAY = 150_000, 5_000

model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
stock = [bytes(40) for _ in range(EPOCHS * STAY)]
for epoch in range(EPOCHS):
    loss = train_epoch(model, optimizer)
    # Gaps between records of one length are of no use for those of another.
    records = [bytes(56 + 16 * epoch) for _ in range(RECORDS)]
    stock[epoch * STAY : (epoch + 1) * STAY] = records[:: RECORDS // STAY]
    del records
    print(f"epoch {epoch}: {loss:.3f}")
