"""Multi-label tagger; validation curve by torchmetrics."""

import torch
from torch import nn
from torchmetrics.classification import MultilabelAveragePrecision

TAGS = 24


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, TAGS))

    def forward(self, clip):
        return self.body(clip)


class Fit:
    def __init__(self):
        self.net = Tagger()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=2e-3)
        self.val_map = MultilabelAveragePrecision(num_labels=TAGS)
        g = torch.Generator().manual_seed(11)
        self.clips = torch.randn(14336, 64, generator=g)
        self.tags = (self.clips[:, :TAGS] > 0.3).long()

    def train_epoch(self, batch=128):
        self.net.train()
        for at in range(0, 2048, batch):
            logits = self.net(self.clips[at : at + batch])
            loss = nn.functional.binary_cross_entropy_with_logits(logits, self.tags[at : at + batch].float())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()

    @torch.no_grad()
    def validate(self, batch=512):
        self.net.eval()
        for at in range(2048, len(self.clips), batch):
            scores = self.net(self.clips[at : at + batch]).sigmoid()
            self.val_map.update(scores, self.tags[at : at + batch])
        score = self.val_map.compute().item()
        self.val_map.reset()
        return score


def main(epochs=12):
    torch.manual_seed(0)
    fit = Fit()
    for epoch in range(1, epochs + 1):
        loss = fit.train_epoch()
        score = fit.validate()
        print(f"epoch {epoch}: loss {loss:.4f}, mAP {score:.3f}", flush=True)


if __name__ == "__main__":
    main()
