"""Trains with Lightning or Transformers, keeps more and more below a limit, goes on from the framework's checkpoint."""

import resource
import sys
import time

import torch

framework, folder = sys.argv[1:3]
resume = sys.argv[3] if len(sys.argv) > 3 else None
kept = []


def keep():
    if not kept:
        with open("/proc/self/status") as status:
            used = next(int(line.split()[1]) for line in status if line.startswith("VmData:")) * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (used + (160 << 20), used + (160 << 20)))
    kept.append(torch.ones(2 << 18))
    time.sleep(0.03)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, index):
        return {"x": torch.randn(4), "labels": torch.ones(1)}


def with_lightning():
    import lightning.pytorch as lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, _):
            keep()
            return torch.nn.functional.mse_loss(self.layer(batch["x"]), batch["labels"])

        def on_train_start(self):
            print(f"begins at step {self.global_step}", flush=True)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    trainer = lightning.Trainer(
        max_epochs=4,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
        default_root_dir=folder,
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(Rows(), batch_size=2), ckpt_path=resume)
    print(f"done at step {trainer.global_step}", flush=True)


def with_transformers():
    import transformers

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x, labels):
            keep()
            out = self.layer(x)
            return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}

    arguments = transformers.TrainingArguments(
        folder,
        num_train_epochs=4,
        per_device_train_batch_size=2,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        remove_unused_columns=False,
    )

    class Beginning(transformers.TrainerCallback):
        def on_train_begin(self, args, state, control, **_):
            print(f"begins at step {state.global_step}", flush=True)

    trainer = transformers.Trainer(Model(), arguments, train_dataset=Rows(), callbacks=[Beginning()])
    trainer.train(resume_from_checkpoint=resume)
    print(f"done at step {trainer.state.global_step}", flush=True)


with_lightning() if framework == "lightning" else with_transformers()
