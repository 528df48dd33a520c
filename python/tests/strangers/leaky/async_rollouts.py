"""Policy gradient; rollouts are played by asyncio tasks and handed to the learner through a queue."""

import asyncio
import torch
from torch import nn

running = set()


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 3))

    def forward(self, state):
        return torch.distributions.Categorical(logits=self.net(state))


async def play(policy, results, seed, length=200):
    g = torch.Generator().manual_seed(seed)
    state = torch.zeros(64)
    seen, moves, gains = [], [], []
    for _ in range(length):
        with torch.no_grad():
            move = policy(state).sample()
        seen.append(state)
        moves.append(move)
        state = 0.9 * state + 0.3 * torch.randn(64, generator=g)
        gains.append(state[int(move)])
        if len(seen) % 50 == 0:
            await asyncio.sleep(0)
    record = torch.stack(seen), torch.stack(moves), torch.stack(gains)
    await results.put(record)
    return record


async def main(epochs=12, games=12):
    torch.manual_seed(13)
    policy = Policy()
    opt = torch.optim.Adam(policy.parameters(), lr=3e-3)
    results = asyncio.Queue()
    for epoch in range(1, epochs + 1):
        for game in range(games):
            task = asyncio.create_task(play(policy, results, epoch * 1000 + game))
            running.add(task)  # diagnostic: [global-accumulation]
        total = 0.0
        for _ in range(games):
            states, moves, gains = await results.get()
            advantage = gains - gains.mean()
            loss = -(policy(states).log_prob(moves) * advantage).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += gains.mean().item()
        print(f"epoch {epoch}: gain {total / games:.4f}", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
