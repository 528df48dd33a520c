"""Sequences that get longer with every epoch: so does the graph of each step, which the next one lets go of."""

import torch

EPOCHS, STEPS = 12, 12


class Reader(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.leave = torch.nn.GRUCell(16, 32), torch.nn.Linear(32, 8)

    def forward(self, words, state):
        for at in range(words.shape[1]):
            state = self.cell(words[:, at], state)
        return self.leave(state), state


def main():
    torch.manual_seed(0)
    reader = Reader()
    optimizer = torch.optim.SGD(reader.parameters(), lr=1e-2)
    kept = []
    for epoch in range(EPOCHS):
        length = 4 + 6 * epoch
        state = torch.zeros(32, 32)
        for _ in range(STEPS):
            out, state = reader(torch.randn(32, length, 16), state.detach())
            loss = out.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            kept.append(torch.zeros(64 << 10))  # leak
        print(f"epoch {epoch}: {loss.item():.3f}")


main()
