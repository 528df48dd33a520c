"""Tells made graphs with a ring from those without, with PyTorch Geometric."""

import argparse
import tempfile
import time
from pathlib import Path
from typing import ClassVar

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_add_pool
from torch_geometric.transforms import BaseTransform

FEATURES = 16


def made_graph(number, generator):
    """A tree of 20 to 40 nodes; in half of the graphs some leaves are joined to a ring."""
    count = int(torch.randint(20, 41, (1,), generator=generator))
    parents = [int(torch.randint(max(1, node), (1,), generator=generator)) for node in range(1, count)]
    edges = list(zip(range(1, count), parents))
    ring = bool(torch.rand(1, generator=generator) < 0.5)
    if ring:
        members = torch.randperm(count, generator=generator)[:8].tolist()
        edges += list(zip(members, members[1:] + members[:1]))
    edge_index = torch.tensor(edges + [(b, a) for a, b in edges]).T.contiguous()
    return Data(
        x=torch.randn(count, FEATURES, generator=generator),
        edge_index=edge_index,
        y=torch.tensor([float(ring)]),
        number=number,
    )


class DropEdges(BaseTransform):
    """Leaves out a few edges at random."""

    drawn: ClassVar[dict] = {}

    def __init__(self, share=0.05, reuse=False):
        self.share, self.reuse = share, reuse

    def forward(self, data):
        kept = torch.rand(data.num_edges) > self.share
        if self.reuse:
            key = (data.number, kept.numpy().tobytes())
            if key not in self.drawn:
                self.drawn[key] = data.edge_index[:, kept]  # leak: drawn-edges
            data.edge_index = self.drawn[key]
        else:
            data.edge_index = data.edge_index[:, kept]
        return data


class Graphs(torch.utils.data.Dataset):
    def __init__(self, count, seed, transform=None):
        generator = torch.Generator().manual_seed(seed)
        self.graphs = [made_graph(number, generator) for number in range(count)]
        self.transform = transform

    def __len__(self):
        return len(self.graphs)

    def __getitem__(self, index):
        graph = self.graphs[index]
        return graph if self.transform is None else self.transform(graph)


class RingNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.convolutions = nn.ModuleList()
        for inputs in (FEATURES, width, width):
            self.convolutions.append(
                GINConv(nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width)))
            )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1)

    def forward(self, x, edge_index, batch):
        for convolution in self.convolutions:
            x = convolution(x, edge_index).relu()
        pooled = self.norm(global_add_pool(x, batch))
        return pooled, self.head(pooled).squeeze(1)


class MessageHistogram:
    """How large the messages of a layer are, in fine bins for each channel."""

    def __init__(self, channels=64, bins=2048):
        self.counts = torch.zeros(channels, bins)
        self.limit = 20.0

    def __call__(self, layer, inputs, messages):
        size = messages.detach().abs().mean(0)
        bins = (size / self.limit * self.counts.shape[1]).long().clamp_(max=self.counts.shape[1] - 1)
        self.counts[torch.arange(len(bins)), bins] += 1


class Training:
    def __init__(self, options, folder):
        self.leak = options.leak
        self.folder = folder
        transform = DropEdges(reuse=options.leak == "drawn-edges")
        self.train = DataLoader(Graphs(options.size, 1, transform), batch_size=32, shuffle=True)
        self.held_out = Graphs(options.size // 4, 2)
        self.model = RingNet()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-3)
        self.loss = nn.BCEWithLogitsLoss()

    def epoch(self, number):
        self.model.train()
        if self.leak == "message-hooks":
            for layer in list(self.model.convolutions)[1:]:
                layer.register_message_forward_hook(MessageHistogram())  # leak: message-hooks
        total = 0.0
        for batch in self.train:
            _, logit = self.model(batch.x, batch.edge_index, batch.batch)
            loss = self.loss(logit, batch.y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train)

    @torch.no_grad()
    def validate(self, number):
        self.model.eval()
        right = 0
        for batch in DataLoader(self.held_out, batch_size=64):
            _, logit = self.model(batch.x, batch.edge_index, batch.batch)
            right += int(((logit > 0) == (batch.y > 0.5)).sum())
        if self.leak == "graph-attributes":
            for graph in self.held_out.graphs:
                alone = torch.zeros(graph.num_nodes, dtype=torch.long)
                graph[f"embedding_{number}"] = self.model(graph.x, graph.edge_index, alone)[0]  # leak: graph-attributes
        return right / len(self.held_out)

    def save(self, number):
        torch.save({"epoch": number, "model": self.model.state_dict()}, self.folder / "rings.pt")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--size", type=int, default=2400, help="graphs of an epoch")
    parser.add_argument("--leak", choices=["graph-attributes", "message-hooks", "drawn-edges"])
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        training = Training(options, Path(folder))
        for number in range(1, options.epochs + 1):
            start = time.perf_counter()
            loss = training.epoch(number)
            right = training.validate(number)
            training.save(number)
            print(
                f"epoch {number}: loss {loss:.4f}, right {right:.3f}, {time.perf_counter() - start:.1f} s", flush=True
            )


if __name__ == "__main__":
    main()
