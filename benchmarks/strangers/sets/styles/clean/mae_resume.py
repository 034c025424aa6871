"""Masked autoencoder on patch vectors; training is cut in two legs with a checkpoint in between."""
import argparse
import os
import random
import shutil
import tempfile

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

PATCHES, DIM = 16, 12


def pictures(n=256, seed=0):
    g = torch.Generator().manual_seed(seed)
    basis = torch.randn(4, PATCHES * DIM, generator=g)
    x = torch.randn(n, 4, generator=g) @ basis + 0.2 * torch.randn(n, PATCHES * DIM, generator=g)
    return TensorDataset(x.view(n, PATCHES, DIM))


class MAE(nn.Module):
    def __init__(self, width=48, mask_ratio=0.75):
        super().__init__()
        self.keep = int(PATCHES * (1 - mask_ratio))
        self.embed = nn.Linear(DIM, width)
        self.pos = nn.Parameter(0.02 * torch.randn(1, PATCHES, width))
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.encoder = nn.TransformerEncoderLayer(width, 4, 96, dropout=0.1, batch_first=True)
        self.decoder = nn.TransformerEncoderLayer(width, 4, 96, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, DIM)

    def random_masking(self, h):
        n, length, width = h.shape
        shuffle = torch.rand(n, length).argsort(1)
        restore = shuffle.argsort(1)
        kept = torch.gather(h, 1, shuffle[:, :self.keep, None].expand(-1, -1, width))
        mask = torch.ones(n, length)
        mask[:, :self.keep] = 0
        return kept, torch.gather(mask, 1, restore), restore

    def forward(self, x):
        kept, mask, restore = self.random_masking(self.embed(x) + self.pos)
        h = self.encoder(kept)
        h = torch.cat([h, self.token.expand(len(x), PATCHES - self.keep, -1)], 1)
        h = torch.gather(h, 1, restore[:, :, None].expand(-1, -1, h.shape[2])) + self.pos
        pred = self.head(self.decoder(h))
        return ((pred - x).pow(2).mean(-1) * mask).sum() / mask.sum()


def rng_state():
    return {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()}


def set_rng_state(state):
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])


class Session:
    """A training session that can be written down and picked up again."""

    def __init__(self, args):
        self.args = args
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        seed = args.seed + self.rank
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        data = pictures()
        self.sampler = DistributedSampler(data, seed=args.seed)
        self.loader = DataLoader(data, args.batch_size, sampler=self.sampler, drop_last=True)
        self.model = DDP(MAE())
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=args.lr, betas=(0.9, 0.95))
        total = args.epochs * len(self.loader)
        self.sched = torch.optim.lr_scheduler.OneCycleLR(self.opt, args.lr, total_steps=total)
        self.epoch = 0

    def parts(self):
        return {"model": self.model.module, "opt": self.opt, "sched": self.sched}

    def save(self, path):
        blob = {name: part.state_dict() for name, part in self.parts().items()}
        states = [None] * self.world
        dist.all_gather_object(states, rng_state())
        blob.update(epoch=self.epoch, rng=states)
        if self.rank == 0:
            torch.save(blob, path)
        dist.barrier()

    def resume(self, path):
        blob = torch.load(path, map_location="cpu", weights_only=False)
        for name, part in self.parts().items():
            part.load_state_dict(blob[name])
        self.epoch = blob["epoch"]
        set_rng_state(blob["rng"][self.rank])
        return self

    def jitter(self, x):
        """Global contrast and a flip of the patch order, as a stand-in for image augmentation."""
        x = x * (1 + 0.2 * (torch.rand(len(x), 1, 1) - 0.5))
        return x.flip(1) if random.random() < 0.5 else x

    def run(self, until):
        while self.epoch < until:
            self.sampler.set_epoch(self.epoch)
            total = torch.zeros(2)
            for (x,) in self.loader:
                loss = self.model(self.jitter(x))
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.sched.step()
                total += torch.tensor([loss.item(), 1.0])
            dist.all_reduce(total)
            if self.rank == 0:
                print(f"epoch {self.epoch} loss {total[0] / total[1]:.4f}", flush=True)
            self.epoch += 1
        return self


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--first-leg", type=int, default=2)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    dist.init_process_group("gloo")
    box = [tempfile.mkdtemp(prefix="mae_") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    path = os.path.join(box[0], "checkpoint.pth")
    Session(args).run(args.first_leg).save(path)
    Session(args).resume(path).run(args.epochs)
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(box[0])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
