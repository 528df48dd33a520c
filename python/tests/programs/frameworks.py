"""The smallest model, data and settings that Lightning and Transformers train with, for the programs beside this."""

import torch
from torch.utils.data import Dataset


class Rows(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return {"x": torch.randn(4), "labels": torch.ones(1)}


def lightning_module():
    import lightning.pytorch as lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, _):
            return torch.nn.functional.mse_loss(self.layer(batch["x"]), batch["labels"])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    return Module


def lightning_trainer(folder, epochs):
    import lightning.pytorch as lightning

    return lightning.Trainer(
        max_epochs=epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
        default_root_dir=folder,
    )


class TransformersModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x, labels):
        out = self.layer(x)
        return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}


def transformers_arguments(folder, **more):
    import transformers

    return transformers.TrainingArguments(
        folder, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, remove_unused_columns=False, **more
    )
