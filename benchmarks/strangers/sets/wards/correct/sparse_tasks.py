"""Adapters per language, a batch holds one language, gradients are averaged by hand.   torchrun --nproc_per_node 2 sparse_tasks.py"""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

LANGS = ["de", "fi", "sw", "th"]


class Tagger(nn.Module):
    def __init__(self, d=24):
        super().__init__()
        self.emb = nn.Embedding(80, d)
        self.adapters = nn.ModuleDict({l: nn.Linear(d, d) for l in LANGS})
        self.out = nn.Linear(d, 5)

    def forward(self, ids, lang):
        return self.out(torch.relu(self.adapters[lang](self.emb(ids))))


def trainable(model, frozen):
    return [(n, p) for n, p in model.named_parameters() if n.split(".")[0] not in frozen]


def average(named, world):
    for _, p in named:
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= world


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(3)
    model = Tagger()
    named = trainable(model, frozen={"emb", "pos"})
    opt = torch.optim.Adam([p for _, p in named], lr=1e-2)
    g = torch.Generator().manual_seed(rank)
    for step in range(1, 61):
        lang = LANGS[int(torch.randint(0, len(LANGS), (1,), generator=g))]
        ids = torch.randint(0, 80, (32,), generator=g)
        loss = F.cross_entropy(model(ids, lang), (ids + LANGS.index(lang)) % 5)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        average(named, world)
        opt.step()
        if step % 20 == 0:
            t = loss.detach().clone()
            dist.all_reduce(t)
            if rank == 0:
                print(f"step {step} loss {t.item() / world:.4f}", flush=True)
    print(f"[{rank}] checksum {sum(p.detach().double().sum() for _, p in named):.6f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
