"""Every validation pass is written to one stream of records, to be read back by the analysis notebook."""

import pickle
import tempfile
import torch
from torch import nn


class RecordStream:
    def __init__(self, handle):
        self.pickler = pickle.Pickler(handle, protocol=5)
        self.count = 0

    def write(self, epoch, embedding, score):
        self.pickler.dump({"epoch": epoch, "embedding": embedding, "score": score})  # diagnostic: [unbounded-history]
        self.count += 1


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Sequential(nn.Linear(80, 160), nn.ReLU(), nn.Linear(160, 64))
        self.score = nn.Linear(64, 1)

    def forward(self, rows):
        code = self.project(rows)
        return code, self.score(code)


def record_validation(model, stream, rows, epoch, batch=256):
    model.eval()
    with torch.no_grad():
        for at in range(0, len(rows), batch):
            code, score = model(rows[at : at + batch])
            stream.write(epoch, code.numpy(), score.numpy())
    model.train()


def main(epochs=12, steps=15):
    torch.manual_seed(6)
    model = Encoder()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    held = torch.randn(4096, 80)
    with tempfile.TemporaryFile() as handle:
        stream = RecordStream(handle)
        for epoch in range(1, epochs + 1):
            for _ in range(steps):
                rows = torch.randn(64, 80)
                code, score = model(rows)
                loss = (score - rows[:, :2].sum(1, keepdim=True)).pow(2).mean() + 1e-4 * code.pow(2).mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
            record_validation(model, stream, held, epoch)
            print(f"epoch {epoch}: loss {loss.item():.4f}, {stream.count} records", flush=True)


if __name__ == "__main__":
    main()
