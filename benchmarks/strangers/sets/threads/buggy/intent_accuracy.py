"""Intent classification with accelerate; the test split is scored with a plain accuracy object."""
import dataclasses

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclasses.dataclass(frozen=True)
class Recipe:
    vocab: int = 120
    intents: int = 6
    words: int = 7
    train_size: int = 240
    test_size: int = 53
    batch: int = 12
    epochs: int = 3
    lr: float = 0.02


class Accuracy:
    def __init__(self):
        self.right, self.count = 0, 0

    def add_batch(self, predictions, references):
        self.right += int((predictions == references).sum())
        self.count += len(references)

    def compute(self):
        return {"accuracy": self.right / self.count, "examples": self.count}


class BagOfWords(nn.Module):
    def __init__(self, r):
        super().__init__()
        self.bag = nn.EmbeddingBag(r.vocab, 24, mode="mean")
        self.cls = nn.Linear(24, r.intents)

    def forward(self, ids):
        return self.cls(self.bag(ids))


def synth(r, n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % r.intents
    lo = y * (r.vocab // r.intents)
    own = lo[:, None] + torch.randint(0, r.vocab // r.intents, (n, r.words), generator=g)
    noise = torch.randint(0, r.vocab, (n, r.words), generator=g)
    pick = torch.rand(n, r.words, generator=g) < 0.45
    return TensorDataset(torch.where(pick, own, noise), y)


def loaders(r):
    yield DataLoader(synth(r, r.train_size, 1), batch_size=r.batch, shuffle=True)
    yield DataLoader(synth(r, r.test_size, 2), batch_size=r.batch)


class Loop:
    def __init__(self, recipe):
        torch.manual_seed(10)
        self.acc = Accelerator(cpu=True)
        net = BagOfWords(recipe)
        opt = torch.optim.Adam(net.parameters(), lr=recipe.lr)
        self.net, self.opt, self.train, self.test = self.acc.prepare(net, opt, *loaders(recipe))
        self.recipe = recipe

    def fit_epoch(self):
        self.net.train()
        for ids, y in self.train:
            loss = nn.functional.cross_entropy(self.net(ids), y)
            self.acc.backward(loss)
            self.opt.step()
            self.opt.zero_grad()

    def collect(self, *tensors):
        return self.acc.gather(tensors)

    @torch.no_grad()
    def score(self):
        self.net.eval()
        metric = Accuracy()
        for ids, y in self.test:
            predictions, references = self.collect(self.net(ids).argmax(-1), y)
            metric.add_batch(predictions=predictions, references=references)
        return metric.compute()

    def run(self):
        for e in range(self.recipe.epochs):
            self.fit_epoch()
            self.acc.print(f"epoch {e}", self.score())
        self.acc.end_training()


if __name__ == "__main__":
    Loop(Recipe()).run()
