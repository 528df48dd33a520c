# no place for `rate.clone()` where rate is a float: AttributeError
import torch


class Meter:
    def __init__(self):
        self.values = []

    def update(self, value):
        self.values.append(value)


def main(model, loader, epochs):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda e: 0.9**e)
    rates = []
    step = 0
    while step < 1000:
        for x, y in loader:
            loss = (model(x) - y).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            rates.append(sched.get_last_lr()[0])
            step += 1
    return rates
