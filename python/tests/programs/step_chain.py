"""Every step of an agent refers to the one before it, for returns over two steps, and so to all of them."""

import torch
from small import EPOCHS, STEPS, network, train_epoch


class Step:
    __slots__ = ("before", "observation", "reward")

    def __init__(self, observation, reward, before):
        self.observation = observation
        self.reward = reward
        self.before = before


class Agent:
    def __init__(self):
        self.latest = None

    def act(self, observation):
        reward = observation.mean().item()
        self.latest = Step(observation, reward, self.latest)  # leak
        return reward + (self.latest.before.reward if self.latest.before else 0.0)


def main(agent):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(EPOCHS):
        total = sum(agent.act(torch.rand(64, 1024)) for _ in range(STEPS))
        print(f"epoch {epoch}: {train_epoch(model, optimizer):.3f} {total:.3f}")


if __name__ == "__main__":
    main(Agent())
