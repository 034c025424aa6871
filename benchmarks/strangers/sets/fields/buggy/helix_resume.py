"""Secondary structure per residue (helix, strand, coil): pretraining, then a continued run from the checkpoint."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

RESIDUES, STATES = 20, 3


class StructureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(RESIDUES, 16)
        self.conv = nn.Conv1d(16, 32, 7, padding=3)
        self.cls = nn.Conv1d(32, STATES, 1)

    def forward(self, seq):
        return self.cls(torch.relu(self.conv(self.emb(seq).transpose(1, 2))))


class Checkpointer:
    def __init__(self, path):
        self.path = path

    def save(self, model, opt, epoch):
        if dist.get_rank() == 0:
            torch.save({"model": model.module.state_dict(), "opt": opt.state_dict(), "epoch": epoch}, self.path)
        dist.barrier()

    def load(self, model, opt):
        epoch = torch.zeros(1, dtype=torch.long)
        if dist.get_rank() == 0:
            blob = torch.load(self.path, weights_only=True)
            model.module.load_state_dict(blob["model"])
            opt.load_state_dict(blob["opt"])
            epoch.fill_(blob["epoch"] + 1)
        dist.broadcast(epoch, src=0)
        return int(epoch)


def chains(rank, n=96, length=40):
    table = torch.randint(0, STATES, (RESIDUES,), generator=torch.Generator().manual_seed(0))
    seq = torch.randint(0, RESIDUES, (n, length), generator=torch.Generator().manual_seed(1 + rank))
    return seq, table[seq]


def epoch_of(model, opt, data):
    seq, state = data
    for i in range(0, len(seq), 16):
        loss = nn.functional.cross_entropy(model(seq[i:i + 16]), state[i:i + 16])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def new_model(seed):
    torch.manual_seed(seed)
    model = DDP(StructureNet())
    return model, torch.optim.Adam(model.parameters(), lr=3e-3)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    data = chains(rank)
    ckpt = Checkpointer(os.path.join(tempfile.gettempdir(), f"helix_{os.getppid()}.pt"))

    model, opt = new_model(seed=0)
    for epoch in range(3):
        loss = epoch_of(model, opt, data)
        ckpt.save(model, opt, epoch)
    if rank == 0:
        print(f"stopped after epoch {epoch}, loss {loss:.3f}", flush=True)

    model, opt = new_model(seed=1)
    first = ckpt.load(model, opt)
    for epoch in range(first, first + 3):
        loss = epoch_of(model, opt, data)
        if rank == 0:
            print(f"epoch {epoch} loss {loss:.3f}", flush=True)
    dist.barrier()
    if rank == 0:
        os.remove(ckpt.path)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
