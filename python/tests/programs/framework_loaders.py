"""Trains for an epoch with the loaders of Lightning or Transformers; prints how many rows came at once, and the steps."""

import json
import sys

from frameworks import Rows, TransformersModel, lightning_module, lightning_trainer, transformers_arguments
from torch.utils.data import DataLoader

framework, folder = sys.argv[1:]
rows = {}


def with_lightning():
    import lightning.pytorch as lightning

    class Module(lightning_module()):
        def training_step(self, batch, index):
            rows["training"] = len(batch["x"])
            return super().training_step(batch, index)

        def validation_step(self, batch, _):
            rows["validation"] = len(batch["x"])

    class Data(lightning.LightningDataModule):
        def train_dataloader(self):
            return DataLoader(Rows(64), batch_size=32, shuffle=True, num_workers=3, persistent_workers=True)

        def val_dataloader(self):
            return DataLoader(Rows(64), batch_size=64, num_workers=2)

    trainer = lightning_trainer(folder, epochs=1)
    trainer.fit(Module(), datamodule=Data())
    return trainer.global_step


def with_transformers():
    import transformers

    class Model(TransformersModel):
        def forward(self, x, labels):
            rows["training" if self.training else "validation"] = len(x)
            return super().forward(x, labels)

    arguments = transformers_arguments(
        folder,
        num_train_epochs=1,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=64,
        dataloader_num_workers=3,
        eval_strategy="epoch",
    )
    trainer = transformers.Trainer(Model(), arguments, train_dataset=Rows(64), eval_dataset=Rows(64))
    trainer.train()
    return trainer.state.global_step


steps = with_lightning() if framework == "lightning" else with_transformers()
print(json.dumps({**rows, "steps": steps}))
