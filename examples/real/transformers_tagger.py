"""Trains a tiny BERT from scratch to tag the words of made sentences, with the Trainer of Transformers."""

import argparse
import copy
import tempfile
import time
import warnings

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForTokenClassification,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    logging,
)

WORDS, TAGS, LENGTH = 800, 9, 32


class Sentences(Dataset):
    """Sequences of word numbers; the tag of a word hangs on it and on the one before."""

    def __init__(self, count, seed):
        random = np.random.default_rng(seed)
        self.words = random.integers(4, WORDS, (count, LENGTH))
        before = np.roll(self.words, 1, axis=1)
        self.tags = np.where(before % 5 == 0, self.words % 4, 4 + self.words % 5)
        self.lengths = random.integers(LENGTH // 2, LENGTH + 1, count)

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        there = np.arange(LENGTH) < self.lengths[index]
        return {
            "input_ids": torch.from_numpy(np.where(there, self.words[index], 0)),
            "attention_mask": torch.from_numpy(there.astype(np.int64)),
            "labels": torch.from_numpy(np.where(there, self.tags[index], -100)),
        }


class Quality:
    """Accuracy and macro F1 of an evaluation."""

    def __init__(self, keep=False):
        self.keep = keep
        self.past = []
        self.best = 0.0

    def __call__(self, prediction):
        logits, tags = prediction.predictions, prediction.label_ids
        there = tags != -100
        guess = logits.argmax(-1)[there]
        truth = tags[there]
        scores = []
        for tag in range(TAGS):
            hits = np.sum((guess == tag) & (truth == tag))
            scores.append(2 * hits / max(np.sum(guess == tag) + np.sum(truth == tag), 1))
        self.best = max(self.best, float(np.mean(scores)))
        if self.keep:
            self.past.append((logits, tags))  # leak: past-logits
        return {"accuracy": float(np.mean(guess == truth)), "f1": float(np.mean(scores)), "best_f1": self.best}


class Averaging(TrainerCallback):
    """A running average of the weights, taken at the ends of epochs."""

    def __init__(self, keep=False):
        self.keep = keep
        self.members = []
        self.mean = None

    def on_epoch_end(self, args, state, control, model=None, **others):
        if self.keep:
            self.members.append(copy.deepcopy(model))  # leak: members
        weights = model.state_dict()
        if self.mean is None:
            self.mean = {name: value.clone() for name, value in weights.items()}
        for name, value in weights.items():
            if value.is_floating_point():
                self.mean[name].lerp_(value, 0.2)


class Progress(TrainerCallback):
    def __init__(self):
        self.started = time.perf_counter()

    def on_evaluate(self, args, state, control, metrics=None, **others):
        loss, f1 = metrics["eval_loss"], metrics["eval_f1"]
        seconds = time.perf_counter() - self.started
        print(f"epoch {round(state.epoch)}: loss {loss:.3f}, F1 {f1:.3f}, {seconds:.1f} s", flush=True)


class SmoothTrainer(Trainer):
    """Punishes confidence beside the usual loss, and knows the mean of both."""

    def __init__(self, *arguments, leak=None, **options):
        super().__init__(*arguments, **options)
        self.leak = leak
        self.usual_total = torch.zeros(())
        self.count = 0

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        usual = outputs.loss
        logits = outputs.logits.log_softmax(-1)
        confidence = -logits.mean() - np.log(TAGS)
        if model.training:
            self.count += 1
            if self.leak == "loss-total":
                self.usual_total += usual  # leak: loss-total
            else:
                self.usual_total += usual.detach()
        loss = usual + 0.05 * confidence
        return (loss, outputs) if return_outputs else loss


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--size", type=int, default=3200, help="sentences of an epoch")
    parser.add_argument("--leak", choices=["past-logits", "members", "loss-total"])
    options = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=LENGTH,
        num_labels=TAGS,
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            num_train_epochs=options.epochs,
            per_device_train_batch_size=32,
            per_device_eval_batch_size=64,
            learning_rate=1e-3,
            eval_strategy="epoch",
            save_strategy="epoch",
            save_total_limit=1,
            logging_strategy="epoch",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            dataloader_pin_memory=False,
            seed=0,
        )
        trainer = SmoothTrainer(
            BertForTokenClassification(config),
            arguments,
            train_dataset=Sentences(options.size, 1),
            eval_dataset=Sentences(options.size // 4, 2),
            compute_metrics=Quality(keep=options.leak == "past-logits"),
            callbacks=[Averaging(keep=options.leak == "members"), Progress()],
            leak=options.leak,
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()


if __name__ == "__main__":
    main()
