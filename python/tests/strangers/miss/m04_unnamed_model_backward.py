# `student` is no name that caulk takes for a model, so its output counts as a plain tensor, and
# `loss.backward()` does not correct that. With the parameter named `model` it is reported.
import torch.nn.functional as F


def fit(student, batches, epochs, opt):
    for epoch in range(epochs):
        running = 0.0
        for x, y in batches:
            opt.zero_grad()
            loss = F.mse_loss(student(x), y)
            loss.backward()
            opt.step()
            running += loss  # diagnostic: [loss-kept-with-graph]
        print(running / len(batches))
