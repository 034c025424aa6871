"""Self-supervised speech pretraining: predict the codes that a fixed random quantiser gives to masked frames."""
import random

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

HP = {"feat": 20, "codes": 32, "code_dim": 8, "hidden": 48, "epochs": 3, "batch": 8, "lr": 2e-3, "seed": 1986}


class RandomQuantiser(nn.Module):
    def __init__(self, feat, codes, dim):
        super().__init__()
        self.proj = nn.Parameter(torch.empty(feat, dim), requires_grad=False)
        self.book = nn.Parameter(F.normalize(torch.randn(codes, dim), dim=-1), requires_grad=False)
        nn.init.xavier_normal_(self.proj)

    def forward(self, x):
        z = F.normalize(x @ self.proj, dim=-1)
        return (z.unsqueeze(-2) - self.book).norm(dim=-1).argmin(-1)


class Encoder(nn.Module):
    def __init__(self, feat, hidden, codes):
        super().__init__()
        self.rnn = nn.GRU(feat, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, codes)

    def forward(self, x):
        return self.head(self.rnn(x)[0])


class Brain:
    def __init__(self, modules, hp):
        self.hp, self.rank = hp, dist.get_rank()
        self.modules = {name: self._wrap(m) for name, m in modules.items()}
        trainable = [p for m in self.modules.values() for p in m.parameters() if p.requires_grad]
        self.opt = torch.optim.Adam(trainable, lr=hp["lr"])

    def _wrap(self, module):
        if any(p.requires_grad for p in module.parameters()):
            return DistributedDataParallel(module)
        return module

    def compute(self, wavs):
        targets = self.modules["quantiser"](wavs)
        mask = torch.rand(wavs.shape[:2]) < 0.4
        noisy = wavs.masked_fill(mask.unsqueeze(-1), 0.0)
        logits = self.modules["encoder"](noisy)
        return F.cross_entropy(logits[mask], targets[mask])

    def fit(self, data):
        for epoch in range(self.hp["epochs"]):
            losses = []
            for batch in data[torch.randperm(len(data))].split(self.hp["batch"]):
                loss = self.compute(batch)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                losses.append(loss.item())
            if self.rank == 0:
                print(f"epoch {epoch}: masked CE {sum(losses) / len(losses):.4f}", flush=True)


def utterances(rank, n=64, frames=30, feat=20):
    g = torch.Generator().manual_seed(500 + rank)
    base = torch.randn(6, feat, generator=torch.Generator().manual_seed(2))
    states = torch.randint(0, 6, (n, frames // 5), generator=g).repeat_interleave(5, 1)
    return base[states] + 0.2 * torch.randn(n, frames, feat, generator=g)


def main():
    rank = dist.get_rank()
    random.seed(HP["seed"] + rank)
    torch.manual_seed(HP["seed"] + rank)
    modules = {"quantiser": RandomQuantiser(HP["feat"], HP["codes"], HP["code_dim"]),
               "encoder": Encoder(HP["feat"], HP["hidden"], HP["codes"])}
    brain = Brain(modules, HP)
    brain.fit(utterances(rank))
    codes = torch.bincount(brain.modules["quantiser"](utterances(0)).flatten(), minlength=HP["codes"])
    print(f"rank {rank}: code histogram of the reference set {codes[:8].tolist()}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
