"""Epochs of training loops that are not the program's own."""

from __future__ import annotations

import pytest

EPOCH = 0


LIGHTNING = """
import logging, warnings
warnings.simplefilter("ignore")
for name in ("lightning.pytorch", "pytorch_lightning"):
    logging.getLogger(name).setLevel(logging.ERROR)
import {package} as L

class System(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 1)
    def training_step(self, batch, index):
        return self.net(batch[0]).square().mean()
    def validation_step(self, batch, index):
        self.net(batch[0])
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

for _ in range(2):
    trainer = L.Trainer(
        max_epochs=3, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, accelerator="cpu",
    )
    trainer.fit(System(), DataLoader(data, batch_size=8), DataLoader(data, batch_size=20))
"""


@pytest.mark.full
@pytest.mark.parametrize("name", ["lightning.pytorch", "pytorch_lightning"])
def test_lightning_tells_its_epochs(run, name):
    pytest.importorskip(name.partition(".")[0])
    told = run(LIGHTNING.format(package=name), head=True)
    assert told.epochs == [0, 1, 2, 3, 4, 5]
    assert told.epoch_steps == [1, 6, 11, 16, 21, 26]
    assert told.phases() == [0, 2, 2, 2, 2, 2]
    assert (EPOCH, "lightning") in told.sources


TRANSFORMERS = """
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

config = BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
rows = [{"input_ids": torch.arange(4), "labels": torch.tensor(0)} for _ in range(20)]
arguments = TrainingArguments(
    output_dir="out", num_train_epochs=4, per_device_train_batch_size=4, eval_strategy="epoch", save_strategy="no",
    logging_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
)
Trainer(BertForSequenceClassification(config), arguments, train_dataset=rows, eval_dataset=rows).train()
"""


@pytest.mark.full
def test_transformers_tells_its_epochs(run):
    pytest.importorskip("transformers")
    told = run(TRANSFORMERS, head=True)
    assert told.epoch_steps == [1, 6, 11, 16]
    assert told.phases() == [0, 2, 2, 2]
    assert (EPOCH, "transformers") in told.sources


ACCELERATE = """
from accelerate import Accelerator

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
net, opt, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=4))
for epoch in range(4):
    for x, y in loader:
        with accelerator.accumulate(net):
            loss = net(x).square().mean()
            accelerator.backward(loss)
            opt.step()
            opt.zero_grad()
"""


@pytest.mark.full
def test_accelerate_is_seen_through(run):
    pytest.importorskip("accelerate")
    told = run(ACCELERATE, head=True)
    assert told.epoch_steps == [1, 6, 11, 16]
    assert told.steps == 20
    assert {(key[0], value[0]) for key, value in told.sites.items()} == {(10, "<module>")}
