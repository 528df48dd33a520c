"""Predicts which visits of a shop end in a purchase, from a table of Python records, with Lightning.

300,000 visits are some two million Python objects.
"""

import argparse
import csv
import logging
import random
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.loggers.logger import Logger
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler
from torchmetrics.classification import BinaryAccuracy, BinaryAUROC

COUNTRIES = ["at", "be", "ch", "de", "dk", "es", "fi", "fr", "it", "nl", "no", "pl", "pt", "se"]
PAGES = 200


@dataclass(slots=True)
class Visit:
    session: str
    country: str
    seconds: float
    spent: float
    pages: tuple
    bought: bool


class Visits(Dataset):
    """The table, in memory."""

    def __init__(self, count, seed):
        draw = random.Random(seed)
        self.table = [self.visit(number, draw) for number in range(count)]
        self.place = {name: number for number, name in enumerate(COUNTRIES)}

    @staticmethod
    def visit(number, draw):
        pages = tuple(draw.randrange(PAGES) for _ in range(4))
        seconds, spent = draw.expovariate(0.01), draw.random() * 100
        bought = seconds / 100 + spent / 50 + (pages[0] % 7 == 0) + draw.gauss(0, 0.5) > 2.2
        return Visit(f"session-{number}", draw.choice(COUNTRIES), seconds, spent, pages, bought)

    def __len__(self):
        return len(self.table)

    def __getitem__(self, index):
        visit = self.table[index]
        return self.place[visit.country], visit.pages, (visit.seconds / 100, visit.spent / 100), visit.bought


def collate(rows):
    country, pages, numbers, bought = zip(*rows)
    return torch.tensor(country), torch.tensor(pages), torch.tensor(numbers), torch.tensor(bought).float()


class Purchase(pl.LightningModule):
    def __init__(self, leak):
        super().__init__()
        self.leak = leak
        self.country = nn.Embedding(len(COUNTRIES), 8)
        self.page = nn.Embedding(PAGES, 16)
        self.body = nn.Sequential(nn.Linear(8 + 4 * 16 + 2, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
        self.head = nn.Linear(64, 1)
        self.accuracy, self.area = BinaryAccuracy(), BinaryAUROC(thresholds=100)
        self.embeddings = []

    def forward(self, country, pages, numbers):
        features = torch.cat([self.country(country), self.page(pages).flatten(1), numbers], dim=1)
        hidden = self.body(features)
        return hidden, self.head(hidden).squeeze(1)

    def training_step(self, batch, index):
        *inputs, bought = batch
        _, logit = self(*inputs)
        loss = nn.functional.binary_cross_entropy_with_logits(logit, bought)
        margin = logit.detach().abs()
        self.log_dict({"loss": loss, "margin": margin.mean(), "narrowest": margin.min(), "share": bought.mean()})
        return loss

    def validation_step(self, batch, index):
        *inputs, bought = batch
        hidden, logit = self(*inputs)
        self.accuracy.update(logit, bought.int())
        self.area.update(logit, bought.int())
        if self.leak == "embeddings":
            self.embeddings.append(hidden)  # leak: embeddings

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            accuracy, area = self.accuracy.compute().item(), self.area.compute().item()
            print(f"epoch {self.current_epoch + 1}: accuracy {accuracy:.3f}, area {area:.3f}", flush=True)
        self.accuracy.reset()
        self.area.reset()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class GradientWatch(Callback):
    """Looks at gradients now and then: warns if one vanishes."""

    def __init__(self, every=20, keep=False):
        self.every, self.keep = every, keep
        self.seen = {}

    def on_before_optimizer_step(self, trainer, module, optimizer):
        if trainer.global_step % self.every:
            return
        gradients = {name: weight.grad for name, weight in module.named_parameters() if weight.grad is not None}
        for name, gradient in gradients.items():
            if not gradient.any():
                warnings.warn(f"the gradient of {name} is zero", stacklevel=2)
        if self.keep:
            self.seen[trainer.global_step] = {name: part.clone() for name, part in gradients.items()}  # leak: gradients


class TableLogger(Logger):
    """A CSV file of what is logged."""

    name, version = "table", 0

    def __init__(self, path, keep=False):
        super().__init__()
        self.path, self.keep = path, keep
        self.rows = []

    def log_metrics(self, metrics, step=None):
        row = {"step": step, "time": time.time(), **metrics}
        with open(self.path, "a", newline="") as file:
            csv.writer(file).writerow(row.values())
        if self.keep:
            self.rows.append(row)  # leak: logged-rows

    def log_hyperparams(self, params, *arguments, **options):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--size", type=int, default=300_000, help="visits in the table")
    parser.add_argument("--leak", choices=["embeddings", "gradients", "logged-rows"])
    options = parser.parse_args()
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message=".*(workers|litlogger|tensorboard).*")
    pl.seed_everything(0, verbose=False)
    torch.set_num_threads(1)
    visits, held_out = Visits(options.size, 1), Visits(options.size // 20, 2)
    sampler = RandomSampler(visits, num_samples=options.size // 5)
    with tempfile.TemporaryDirectory() as folder:
        trainer = pl.Trainer(
            accelerator="cpu",
            max_epochs=options.epochs,
            logger=TableLogger(Path(folder) / "log.csv", keep=options.leak == "logged-rows"),
            callbacks=[GradientWatch(keep=options.leak == "gradients"), ModelCheckpoint(folder, save_last=True)],
            log_every_n_steps=1,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(
            Purchase(options.leak),
            DataLoader(visits, batch_size=128, sampler=sampler, collate_fn=collate),
            DataLoader(held_out, batch_size=256, collate_fn=collate),
        )


if __name__ == "__main__":
    main()
