"""Click-through model with embedding tables that are set up by a scheme chosen in the config."""
import math
from collections import OrderedDict

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TABLES = OrderedDict(user=200, item=300, context=20)
SPEC = {"dim": 8, "init": "dlrm", "seed": 2024, "batch": 64, "steps": 60, "lr": 0.05}

INITS = {}


def register(name):
    def deco(fn):
        INITS[name] = fn
        return fn
    return deco


@register("dlrm")
def dlrm(table):
    bound = math.sqrt(1.0 / table.num_embeddings)
    table.weight.data.uniform_(-bound, bound)


@register("normal")
def normal(table):
    table.weight.data.normal_(0, 0.01)


class Tables(nn.ModuleDict):
    def __init__(self, sizes, dim):
        super().__init__({k: nn.Embedding(n, dim) for k, n in sizes.items()})

    def reset(self, scheme):
        for t in self.values():
            INITS[scheme](t)

    def forward(self, ids):
        return [t(ids[:, i]) for i, t in enumerate(self.values())]


class ClickModel(nn.Module):
    def __init__(self, sizes, dim):
        super().__init__()
        self.tables = Tables(sizes, dim)
        self.over = nn.Sequential(nn.Linear(3 * dim + 3, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, ids):
        e = self.tables(ids)
        cross = torch.stack([(e[0] * e[1]).sum(1), (e[0] * e[2]).sum(1), (e[1] * e[2]).sum(1)], 1)
        return self.over(torch.cat(e + [cross], 1)).squeeze(1)


class Pipeline:
    def __init__(self, spec):
        self.spec = spec
        self.rank = dist.get_rank()
        torch.manual_seed(spec["seed"] + self.rank)
        truth = torch.Generator().manual_seed(1)
        self.bias = [torch.randn(n, generator=truth) for n in TABLES.values()]

    def build(self):
        net = ClickModel(TABLES, self.spec["dim"])
        self.model = DistributedDataParallel(net)
        self.opt = torch.optim.Adagrad(self.model.parameters(), lr=self.spec["lr"])
        net.tables.reset(self.spec["init"])
        return self

    def impressions(self, n):
        ids = torch.stack([torch.randint(0, s, (n,)) for s in TABLES.values()], 1)
        logit = sum(b[ids[:, i]] for i, b in enumerate(self.bias))
        return ids, torch.bernoulli(torch.sigmoid(1.5 * logit))

    def progress(self):
        for step in range(self.spec["steps"]):
            ids, click = self.impressions(self.spec["batch"])
            loss = nn.functional.binary_cross_entropy_with_logits(self.model(ids), click)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            yield step, loss.item()


def main():
    dist.init_process_group("gloo")
    pipe = Pipeline(SPEC).build()
    recent = []
    for step, loss in pipe.progress():
        recent.append(loss)
        if step % 20 == 19:
            mean = torch.tensor(sum(recent) / len(recent))
            dist.all_reduce(mean)
            recent.clear()
            if pipe.rank == 0:
                print(f"{step + 1:4d} logloss {mean.item() / dist.get_world_size():.4f}", flush=True)
    del pipe.model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
