"""Models for `caulk plan --model`: small ones of which everything that a step keeps can be counted for real."""

import torch


class Cnn(torch.nn.Module):
    """Convolutions, normalisation, pooling."""

    def __init__(self):
        super().__init__()
        layers, channels = [], 3
        for out in (32, 64, 128):
            layers += [torch.nn.Conv2d(channels, out, 3, padding=1, bias=False), torch.nn.BatchNorm2d(out)]
            layers += [torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
            channels = out
        self.features = torch.nn.Sequential(*layers)
        self.head = torch.nn.Linear(channels, 10)

    def forward(self, images):
        return self.head(self.features(images).mean((2, 3)))


class Clips(torch.nn.Module):
    """Convolutions over frames."""

    def __init__(self):
        super().__init__()
        first, second = torch.nn.Conv3d(3, 16, 3, padding=1), torch.nn.Conv3d(16, 32, 3, padding=1)
        pool = torch.nn.MaxPool3d(2)
        self.features = torch.nn.Sequential(
            first, torch.nn.BatchNorm3d(16), torch.nn.ReLU(), pool, second, torch.nn.ReLU()
        )
        self.head = torch.nn.Linear(32, 10)

    def forward(self, clips):
        return self.head(self.features(clips).mean((2, 3, 4)))


class Transformer(torch.nn.Module):
    """Token numbers through an encoder to scores of every token."""

    def __init__(self):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(128, 4, 512, 0.0, batch_first=True, norm_first=True)
        self.embedding = torch.nn.Embedding(1000, 128)
        self.encoder = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = torch.nn.Linear(128, 100)

    def forward(self, tokens):
        return self.head(self.encoder(self.embedding(tokens)))


def reads_values(*_):
    """A model whose way depends on what is in its tensors."""

    class Reads(torch.nn.Linear):
        def forward(self, rows):
            return super().forward(rows) if rows.sum().item() > 0 else rows

    return Reads(8, 8)
