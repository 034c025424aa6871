"""Fine-tune a small text classifier and keep only the newest checkpoints.

    torchrun --nproc_per_node=4 keep_last_two.py
"""
import json
import re
import shutil
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CKPT = re.compile(r"checkpoint-(\d+)$")


class TextNet(nn.Module):
    def __init__(self, vocab=80, dim=24, depth=12):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim), nn.GELU())
                                    for _ in range(depth))
        self.out = nn.Linear(dim, 2)

    def forward(self, ids):
        h = self.emb(ids).mean(1)
        for layer in self.layers:
            h = h + layer(h)
        return self.out(h)


def reviews(n=256):
    g = torch.Generator().manual_seed(12)
    ids = torch.randint(0, 80, (n, 10), generator=g)
    return TensorDataset(ids, (ids < 35).sum(1).gt(4).long())


class CheckpointFolder:
    """checkpoint-<step>/ with one file per tensor, so that big models can be loaded lazily."""

    def __init__(self, root, keep):
        self.root, self.keep = Path(root), keep

    def write(self, step, module, meta):
        target = self.root / f"checkpoint-{step}"
        target.mkdir(parents=True)
        for name, tensor in module.state_dict().items():
            torch.save(tensor.clone(), target / f"{name}.pt")
        (target / "meta.json").write_text(json.dumps(meta))

    def existing(self):
        found = [(int(m.group(1)), p) for p in self.root.iterdir() if (m := CKPT.match(p.name))]
        return [p for _, p in sorted(found)]

    def rotate(self):
        for old in self.existing()[:-self.keep]:
            shutil.rmtree(old)


class Finetuner:
    def __init__(self, model, folder):
        self.model, self.folder = model, folder
        self.opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.step = 0

    def save(self, loss):
        if dist.get_rank() == 0:
            self.folder.write(self.step, self.model.module, {"step": self.step, "loss": loss})
            self.folder.rotate()
        dist.barrier()

    def run(self, loader, epochs):
        for epoch in range(epochs):
            loader.sampler.set_epoch(epoch)
            for ids, label in loader:
                loss = nn.functional.cross_entropy(self.model(ids), label)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.step += 1
            self.save(loss.item())
            if dist.get_rank() == 0:
                print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)


def main():
    dist.init_process_group("gloo")
    place = [tempfile.mkdtemp(prefix="finetune_") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(place)
    torch.manual_seed(2)
    tuner = Finetuner(DDP(TextNet()), CheckpointFolder(place[0], keep=2))
    data = reviews()
    tuner.run(DataLoader(data, batch_size=16, sampler=DistributedSampler(data)), epochs=8)
    dist.barrier()
    if dist.get_rank() == 0:
        print("kept", [p.name for p in tuner.folder.existing()], flush=True)
        shutil.rmtree(place[0])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
