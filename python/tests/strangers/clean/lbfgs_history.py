"""Physics-informed fit by L-BFGS; the optimizer keeps its last 100 directions and no more."""

import torch
from torch import nn


def residual(net, t):
    t = t.requires_grad_()
    u = net(t)
    du = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
    return (du + u).pow(2).mean() + (net(torch.zeros(1, 1)) - 1).pow(2).mean()


def main(epochs=30):
    torch.manual_seed(27)
    net = nn.Sequential(nn.Linear(1, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 1))
    opt = torch.optim.LBFGS(net.parameters(), lr=0.3, max_iter=5, tolerance_grad=0, tolerance_change=0)
    for epoch in range(1, epochs + 1):

        def closure():
            opt.zero_grad()
            loss = residual(net, torch.linspace(0, 3, 64).unsqueeze(1))
            loss.backward()
            return loss

        loss = opt.step(closure)
        print(f"epoch {epoch}: residual {loss.item():.3e}", flush=True)


if __name__ == "__main__":
    main()
