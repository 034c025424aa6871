"""Random search over the network for wafer-defect classification; every trial is trained data-parallel."""
import os
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

SPACE = {
    "width": [16, 24, 32, 40, 48, 64, 80, 96],
    "depth": [1, 2, 3],
    "lr": [1e-3, 3e-3, 1e-2],
}
N_TRIALS = 4


class Trial:
    def __init__(self, number):
        self.number = number
        self.params = {}
        self._rng = random.Random()

    def suggest(self, name):
        if name not in self.params:
            self.params[name] = self._rng.choice(SPACE[name])
        return self.params[name]


class Study:
    def __init__(self):
        self.trials = []

    def ask(self):
        trial = Trial(len(self.trials))
        for name in SPACE:
            trial.suggest(name)
        return trial

    def tell(self, trial, value):
        self.trials.append((value, trial.params))

    @property
    def best(self):
        return max(self.trials, key=lambda t: t[0])


def wafers(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 5, (n,), generator=g)
    centers = torch.randn(5, 20, generator=torch.Generator().manual_seed(9))
    return TensorDataset(centers[y] + torch.randn(n, 20, generator=g), y)


def build(trial):
    layers, inp = [], 20
    for _ in range(trial.suggest("depth")):
        layers += [nn.Linear(inp, trial.suggest("width")), nn.ReLU()]
        inp = trial.suggest("width")
    return nn.Sequential(*layers, nn.Linear(inp, 5))


def objective(trial):
    torch.manual_seed(0)
    model = DDP(build(trial))
    opt = torch.optim.Adam(model.parameters(), lr=trial.suggest("lr"))
    train = wafers(256, 0)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, batch_size=32, sampler=sampler)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            opt.step()
    x, y = wafers(200, 1).tensors
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def run():
    study = Study()
    while len(study.trials) < N_TRIALS:
        trial = study.ask()
        value = objective(trial)
        study.tell(trial, value)
        if int(os.environ["RANK"]) == 0:
            print(f"trial {trial.number}: {trial.params} -> {value:.3f}", flush=True)
    if int(os.environ["RANK"]) == 0:
        print("best", study.best, flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run()
    dist.destroy_process_group()
