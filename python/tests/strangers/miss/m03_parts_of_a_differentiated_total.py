# `whole.backward()` proves that `whole` carries a graph, not that `parts`, of which it is made, do
def one_epoch(net, opt, batches):
    kept = []
    a_sum = 0
    for b in batches:
        opt.zero_grad()
        parts = net.objective(b)
        whole = sum(parts) if isinstance(parts, tuple) else parts
        whole.backward()
        opt.step()
        kept.append(parts)  # diagnostic: [graph-kept-in-container]
        a_sum += parts[0]  # diagnostic: [loss-kept-with-graph]
    return kept, a_sum


def alias(net, opt, batches):
    kept = []
    for b in batches:
        opt.zero_grad()
        value = net.objective(b)
        loss = value
        loss.backward()
        opt.step()
        kept.append(value)  # diagnostic: [graph-kept-in-container]
    return kept
