import torch
from torch import nn


class Actor(nn.Module):
    def __init__(self, env):
        super().__init__()
        self.lstm = nn.LSTM(4, 4)
        self.head = nn.Linear(4, 2)

    def states(self, x, state, done):
        outs = []
        for h, d in zip(x, done):
            h, state = self.lstm(
                h.unsqueeze(0), ((1.0 - d).view(1, -1, 1) * state[0], (1.0 - d).view(1, -1, 1) * state[1])
            )
            outs += [h]
        return torch.cat(outs), state

    def value(self, x, state, done):
        h, _ = self.states(x, state, done)
        return self.head(h)

    def act(self, x, state, done):
        h, state = self.states(x, state, done)
        return self.head(h), state


if __name__ == "__main__":
    env = make_env()
    actor = Actor(env).to("cpu")
    opt = torch.optim.Adam(actor.parameters())
    x, done = torch.zeros(3), torch.zeros(3)
    nxt = (torch.zeros(1, 1, 4), torch.zeros(1, 1, 4))
    for r in range(1, 1000):
        first = (nxt[0].clone(), nxt[1].clone())
        for step in range(0, 128):
            with torch.no_grad():
                out, nxt = actor.act(x, nxt, done)
            x, done = env.step(out.argmax())
        with torch.no_grad():
            v = actor.value(x, nxt, done).reshape(1, -1)
        out, _ = actor.act(x, (first[0][:, :1], first[1][:, :1]), done)
        loss = (out - v).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
