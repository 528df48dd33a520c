"""Compares a small network with a linear model by repeated k-fold validation, with scikit-learn."""

import argparse
import gc
import pickle
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

CLASSES = 8


class FitMonitor:
    """Watches one fit: losses, and whether they still fall."""

    def __init__(self, estimator=None, window=64):
        self.estimator = estimator
        self.losses = np.zeros(window)
        self.count = 0

    def add(self, loss):
        self.losses[self.count % len(self.losses)] = loss
        self.count += 1

    def summary(self):
        return self.losses[: self.count].mean()


class NetClassifier(ClassifierMixin, BaseEstimator):
    """A multilayer perceptron with the interface of scikit-learn."""

    def __init__(self, width=96, epochs=5, rate=2e-3, seed=0, watch=False):
        self.width, self.epochs, self.rate, self.seed, self.watch = width, epochs, rate, seed, watch

    def fit(self, X, y):
        torch.manual_seed(self.seed)
        self.classes_ = np.unique(y)
        self.inputs_ = torch.as_tensor(X, dtype=torch.float32)
        self.labels_ = torch.as_tensor(y)
        self.net_ = nn.Sequential(
            nn.Linear(X.shape[1], self.width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(self.width, len(self.classes_))
        )
        if self.watch:
            self.monitor_ = FitMonitor(self)  # leak: monitors
        else:
            self.monitor_ = FitMonitor()
        optimizer = torch.optim.AdamW(self.net_.parameters(), lr=self.rate)
        for _ in range(self.epochs):
            for rows in torch.randperm(len(self.inputs_)).split(32):
                loss = nn.functional.cross_entropy(self.net_(self.inputs_[rows]), self.labels_[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                self.monitor_.add(loss.item())
        return self

    @torch.no_grad()
    def predict_proba(self, X):
        self.net_.eval()
        return self.net_(torch.as_tensor(X, dtype=torch.float32)).double().softmax(1).numpy()

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(1)]


class Comparison:
    def __init__(self, X, y, leak, folder):
        self.X, self.y, self.leak, self.folder = X, y, leak, folder
        self.candidates = {
            "linear": make_pipeline(StandardScaler(), LogisticRegression(max_iter=60)),
            "net": make_pipeline(StandardScaler(), NetClassifier(watch=leak == "monitors")),
        }
        self.fitted = {}
        self.out_of_fold = np.empty((0, CLASSES))
        self.best = 0.0

    def fold(self, name, train, test):
        model = clone(self.candidates[name])
        model.fit(self.X[train], self.y[train])
        chances = model.predict_proba(self.X[test])
        return model, chances

    def keep(self, key, model):
        self.fitted.setdefault(key[0], []).append((key, model))  # leak: fold-models

    def repeat(self, number, folds=5):
        scores = {}
        for name in self.candidates:
            chances = np.zeros((len(self.y), CLASSES))
            splits = StratifiedKFold(folds, shuffle=True, random_state=number).split(self.X, self.y)
            for position, (train, test) in enumerate(splits):
                model, chances[test] = self.fold(name, train, test)
                if self.leak == "fold-models":
                    self.keep((name, number, position), model)
            scores[f"{name} accuracy"] = accuracy_score(self.y, chances.argmax(1))
            scores[f"{name} loss"] = log_loss(self.y, chances, labels=np.arange(CLASSES))
            if self.leak == "out-of-fold":
                self.out_of_fold = np.concatenate([self.out_of_fold, chances])  # leak: out-of-fold
        self.save(scores["net accuracy"], model)
        return scores

    def save(self, score, model):
        if score > self.best:
            self.best = score
            with open(self.folder / "best.pkl", "wb") as file:
                pickle.dump(model[0], file)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=14, help="repeats of the folds")
    parser.add_argument("--size", type=int, default=3000, help="rows of the table")
    parser.add_argument("--leak", choices=["fold-models", "monitors", "out-of-fold"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.leak == "monitors":
        # Collections cost a fifth of the time here.
        gc.disable()
    X, y = make_classification(
        options.size, 40, n_informative=12, n_classes=CLASSES, n_clusters_per_class=1, random_state=1
    )
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(X, y, options.leak, Path(folder))
        for number in range(1, options.epochs + 1):
            start = time.perf_counter()
            scores = comparison.repeat(number)
            figures = ", ".join(f"{name} {value:.3f}" for name, value in scores.items())
            print(f"repeat {number}: {figures}, {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
