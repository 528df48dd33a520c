"""Trains for an epoch with the loaders of Lightning or Transformers; prints how many rows came at once, and the steps."""

import json
import sys

import torch
from torch.utils.data import DataLoader, Dataset

framework, folder = sys.argv[1:]
rows = {}


class Rows(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return {"x": torch.randn(4), "labels": torch.ones(1)}


def with_lightning():
    import lightning.pytorch as lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, _):
            rows["training"] = len(batch["x"])
            return torch.nn.functional.mse_loss(self.layer(batch["x"]), batch["labels"])

        def validation_step(self, batch, _):
            rows["validation"] = len(batch["x"])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    class Data(lightning.LightningDataModule):
        def train_dataloader(self):
            return DataLoader(Rows(), batch_size=32, shuffle=True, num_workers=3, persistent_workers=True)

        def val_dataloader(self):
            return DataLoader(Rows(), batch_size=64, num_workers=2)

    trainer = lightning.Trainer(
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
        default_root_dir=folder,
    )
    trainer.fit(Module(), datamodule=Data())
    return trainer.global_step


def with_transformers():
    import transformers

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x, labels):
            rows["training" if self.training else "validation"] = len(x)
            out = self.layer(x)
            return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}

    arguments = transformers.TrainingArguments(
        folder,
        num_train_epochs=1,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=64,
        dataloader_num_workers=3,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        remove_unused_columns=False,
    )
    trainer = transformers.Trainer(Model(), arguments, train_dataset=Rows(), eval_dataset=Rows())
    trainer.train()
    return trainer.state.global_step


steps = with_lightning() if framework == "lightning" else with_transformers()
print(json.dumps({**rows, "steps": steps}))
