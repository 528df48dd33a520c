# without several processes gather() returns what it was given, graph and all
from accelerate import Accelerator


def run(model, opt, train, epochs):
    acc = Accelerator()
    model, opt, train = acc.prepare(model, opt, train)
    for epoch in range(epochs):
        kept = []
        for batch in train:
            loss = model(**batch).loss
            acc.backward(loss)
            opt.step()
            opt.zero_grad()
            kept.append(acc.gather_for_metrics(loss.repeat(4)))  # diagnostic: [graph-kept-in-container]
        print(len(kept))
