"""Trains a recurrent language model on a made text, with Accelerate and a tracker of our own."""

import argparse
import math
import tempfile
import time
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.tracking import GeneralTracker
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset

LETTERS, LENGTH = 64, 48


def made_text(length, seed):
    """A chain in which each letter prefers a few followers."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.rand(LETTERS, LETTERS, generator=generator).pow(12)
    table = (table / table.sum(1, keepdim=True)).cumsum(1)
    draws = torch.rand(length, generator=generator)
    text, letter = torch.empty(length, dtype=torch.long), 0
    for position in range(length):
        letter = min(int(torch.searchsorted(table[letter], draws[position])), LETTERS - 1)
        text[position] = letter
    return text


class Crops(Dataset):
    """Random crops of a text, drawn for one epoch."""

    def __init__(self, text, count):
        self.text, self.count = text, count
        self.draw(0)

    def draw(self, epoch):
        generator = torch.Generator().manual_seed(epoch)
        starts = torch.randint(len(self.text) - LENGTH - 1, (self.count,), generator=generator)
        self.crops = self.text[starts[:, None] + torch.arange(LENGTH + 1)]

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.crops[index, :-1], self.crops[index, 1:]


class LetterModel(nn.Module):
    def __init__(self, width=160):
        super().__init__()
        self.embedding = nn.Embedding(LETTERS, 64)
        self.recurrent = nn.GRU(64, width, batch_first=True)
        self.head = nn.Linear(width, LETTERS)

    def forward(self, letters, state=None):
        output, state = self.recurrent(self.embedding(letters), state)
        return self.head(output), state


class Diary(GeneralTracker):
    """Keeps a text file of figures, and a letter distribution to look at."""

    name = "diary"
    requires_logging_directory = False

    def __init__(self, path, all_samples=False):
        super().__init__()
        self.path = path
        self.all_samples = all_samples
        self.samples = []
        self.latest = None

    @property
    def tracker(self):
        return self.path

    def store_init_configuration(self, values):
        self.path.write_text(f"{values}\n")

    def log(self, values, step=None, **options):
        with open(self.path, "a") as file:
            file.write(f"{step} {values['loss']:.4f}\n")
        if self.all_samples:
            self.samples.append((step, values["sample"]))  # leak: tracked-samples
        else:
            self.latest = values["sample"].clone()


class Evaluation:
    """Reads a text from its beginning to its end, some batches at a time."""

    def __init__(self, text, rows=16, leak=None):
        self.rows = text[: len(text) // rows * rows].view(rows, -1)
        self.leak = leak
        self.place, self.state = 0, None

    def perplexity(self, model, batches):
        model.eval()
        total = 0.0
        for _ in range(batches):
            if self.place + LENGTH + 1 > self.rows.shape[1]:
                self.place = 0
            part = self.rows[:, self.place : self.place + LENGTH + 1]
            self.place += LENGTH
            if self.leak == "reading-state":
                logits, self.state = model(part[:, :-1], self.state)  # leak: reading-state
            else:
                with torch.no_grad():
                    logits, self.state = model(part[:, :-1], self.state)
            total += nn.functional.cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten()).item()
        model.train()
        return math.exp(total / batches)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--size", type=int, default=1600, help="crops of an epoch")
    parser.add_argument("--leak", choices=["tracked-samples", "prepared-loaders", "reading-state"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    set_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        diary = Diary(Path(folder) / "diary.txt", all_samples=options.leak == "tracked-samples")
        accelerator = Accelerator(cpu=True, log_with=diary)
        accelerator.init_trackers("letters", {"epochs": options.epochs})
        text = made_text(60_000, 1)
        crops = Crops(text[:48_000], options.size)
        evaluation = Evaluation(text[48_000:], leak=options.leak)
        model = LetterModel()
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, options.epochs * (options.size // 16 + 1))
        loader = DataLoader(crops, batch_size=16, shuffle=True)
        model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
        step = 0
        for epoch in range(1, options.epochs + 1):
            start, total = time.perf_counter(), 0.0
            if options.leak == "prepared-loaders":
                crops = Crops(text[:48_000], options.size)
                crops.draw(epoch)
                loader = accelerator.prepare(DataLoader(crops, batch_size=16, shuffle=True))  # leak: prepared-loaders
            else:
                crops.draw(epoch)
            for letters, following in loader:
                logits, _ = model(letters)
                loss = nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten())
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
                total += loss.item()
                if step % 10 == 0:
                    accelerator.log({"loss": loss.item(), "sample": logits.detach()[0, -1]}, step=step)
                step += 1
            accelerator.save(accelerator.unwrap_model(model).state_dict(), f"{folder}/model.pt")
            perplexity, seconds = evaluation.perplexity(model, 3), time.perf_counter() - start
            loss = total / len(loader)
            print(f"epoch {epoch}: loss {loss:.3f}, perplexity {perplexity:.2f}, {seconds:.1f} s", flush=True)
        accelerator.end_training()


if __name__ == "__main__":
    main()
