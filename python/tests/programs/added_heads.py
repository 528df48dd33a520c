"""A model gets another head in each epoch, which nobody trains and which none of the old ones makes room for."""

import torch
from small import EPOCHS, network, train_epoch


class Growing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = network()
        self.heads = torch.nn.ModuleList([torch.nn.Linear(4, 4)])

    def forward(self, images):
        features = self.body(images)
        return sum(head(features) for head in self.heads)


def main():
    model = Growing()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        loss = train_epoch(model, optimizer)
        head = torch.nn.Sequential(torch.nn.Linear(4, 65536), torch.nn.Linear(65536, 4))
        model.heads.append(head)  # leak
        print(f"epoch {epoch}: {loss:.3f}")


main()
