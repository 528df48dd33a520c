"""A quasi-Newton optimizer gathers its last 100 directions: at the end of the run there is still room for more of them."""

import torch
from small import EPOCHS, network


def main():
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.LBFGS(
        model.parameters(), lr=0.1, max_iter=4, history_size=100, tolerance_grad=0, tolerance_change=0
    )
    inputs = torch.randn(16, 1, 24, 24)
    for epoch in range(EPOCHS):

        def closure():
            optimizer.zero_grad()
            loss = (model(inputs) - 1).pow(2).mean()
            loss.backward()
            return loss

        print(f"epoch {epoch}: {float(optimizer.step(closure)):.5f}")


if __name__ == "__main__":
    main()
