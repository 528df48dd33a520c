"""Slices of one data set and states of one model are kept, which cost nothing, beside a list that grows."""

import torch

EPOCHS, STEPS = 12, 20


class Trainer:
    def __init__(self):
        self.data = torch.randn(4096, 1024)
        self.model = torch.nn.Sequential(torch.nn.Linear(1024, 256), torch.nn.ReLU(), torch.nn.Linear(256, 32))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.seen, self.states, self.features = [], [], []

    def run(self):
        for epoch in range(EPOCHS):
            for step in range(STEPS):
                batch = self.data[step * 64 : step * 64 + 256]
                self.seen.append(batch)
                hidden = self.model[:2](batch)
                loss = self.model[2](hidden).square().mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.features.append(hidden.detach())  # leak
            self.states.append(self.model.state_dict())
            print(f"epoch {epoch}: {loss.item():.3f}")


Trainer().run()
