"""Masked amino acid model, sharded over processes."""
import functools
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel, StateDictType
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from torch.utils.data import DataLoader, Dataset, DistributedSampler

AMINO = "ACDEFGHIKLMNPQRSTVWY"
MASK = len(AMINO)


@dataclass
class Plan:
    sequences: int = 64
    length: int = 24
    dim: int = 32
    layers: int = 2
    batch: int = 8
    epochs: int = 2
    lr: float = 2e-3
    save_to: str = "protein_lm.pt"


class Sequences(Dataset):
    def __init__(self, plan):
        g = torch.Generator().manual_seed(17)
        motif = torch.randint(0, MASK, (6,), generator=g)
        self.data = torch.randint(0, MASK, (plan.sequences, plan.length), generator=g)
        self.data[:, 4:10] = motif

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i]


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.ff(self.norm2(x))


class ProteinLM(nn.Module):
    def __init__(self, plan):
        super().__init__()
        self.tok = nn.Embedding(MASK + 1, plan.dim)
        self.pos = nn.Parameter(0.02 * torch.randn(plan.length, plan.dim))
        self.blocks = nn.ModuleList(Block(plan.dim) for _ in range(plan.layers))
        self.out = nn.Linear(plan.dim, MASK)

    def forward(self, ids):
        x = self.tok(ids) + self.pos
        for block in self.blocks:
            x = block(x)
        return self.out(x)


class Checkpointer:
    def __init__(self, path):
        self.path = path
        self.policy = FullStateDictConfig()

    def write(self, model, epoch):
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT, self.policy):
            weights = model.state_dict()
        torch.save({"epoch": epoch, "weights": weights}, self.path)


def mask_some(ids, rate=0.2):
    hide = torch.rand(ids.shape) < rate
    hide[:, 0] = True
    return ids.masked_fill(hide, MASK), hide


def main():
    plan = Plan()
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(2)
    wrap = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block})
    model = FullyShardedDataParallel(ProteinLM(plan), auto_wrap_policy=wrap, device_id=torch.device("cpu"))
    opt = torch.optim.Adam(model.parameters(), lr=plan.lr)
    data = Sequences(plan)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, plan.batch, sampler=sampler)
    keeper = Checkpointer(plan.save_to)
    for epoch in range(plan.epochs):
        sampler.set_epoch(epoch)
        for ids in loader:
            masked, hide = mask_some(ids)
            loss = F.cross_entropy(model(masked)[hide], ids[hide])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)
        if rank == 0:
            keeper.write(model, epoch)
        dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
