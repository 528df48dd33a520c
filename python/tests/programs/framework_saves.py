"""Trains with Lightning or Transformers, keeps more and more below a limit, goes on from the framework's checkpoint."""

import resource
import sys
import time

import torch
from frameworks import Rows, TransformersModel, lightning_module, lightning_trainer, transformers_arguments
from torch.utils.data import DataLoader

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


def with_lightning():
    class Module(lightning_module()):
        def training_step(self, batch, index):
            keep()
            return super().training_step(batch, index)

        def on_train_start(self):
            print(f"begins at step {self.global_step}", flush=True)

    trainer = lightning_trainer(folder, epochs=4)
    trainer.fit(Module(), DataLoader(Rows(60), batch_size=2), ckpt_path=resume)
    print(f"done at step {trainer.global_step}", flush=True)


def with_transformers():
    import transformers

    class Model(TransformersModel):
        def forward(self, x, labels):
            keep()
            return super().forward(x, labels)

    class Beginning(transformers.TrainerCallback):
        def on_train_begin(self, args, state, control, **_):
            print(f"begins at step {state.global_step}", flush=True)

    arguments = transformers_arguments(folder, num_train_epochs=4, per_device_train_batch_size=2)
    trainer = transformers.Trainer(Model(), arguments, train_dataset=Rows(60), callbacks=[Beginning()])
    trainer.train(resume_from_checkpoint=resume)
    print(f"done at step {trainer.state.global_step}", flush=True)


with_lightning() if framework == "lightning" else with_transformers()
