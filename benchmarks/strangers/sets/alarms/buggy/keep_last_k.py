import json
import os
from collections import deque
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def is_main():
    return int(os.environ.get("RANK", "0")) == 0


class ModelCheckpoint:
    """Keeps the newest `save_last_k` checkpoints of a run."""

    def __init__(self, dirpath, save_last_k=2):
        self.dirpath, self.k = Path(dirpath), save_last_k
        self.kept = deque()
        if is_main():
            self.dirpath.mkdir(parents=True, exist_ok=True)

    def format_name(self, epoch):
        return self.dirpath / f"epoch={epoch:03d}.ckpt"

    def _save_model(self, path, model, epoch):
        if is_main():
            torch.save({"state_dict": model.module.state_dict(), "epoch": epoch}, path)
            (self.dirpath / "last.json").write_text(json.dumps({"path": str(path), "epoch": epoch}))
        dist.barrier()

    def _del_model(self, path):
        os.remove(path)

    def on_epoch_end(self, model, epoch):
        path = self.format_name(epoch)
        self._save_model(path, model, epoch)
        self.kept.append(path)
        if len(self.kept) > self.k:
            self._del_model(self.kept.popleft())


def get_batches(n=6):
    g = torch.Generator().manual_seed(int(os.environ["RANK"]))
    for _ in range(n):
        x = torch.rand(16, 1, 8, 8, generator=g)
        yield x, (x.mean((1, 2, 3)) > 0.5).long()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(42)
    model = DDP(nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    saver = ModelCheckpoint("lightning_logs/version_0/checkpoints")
    for epoch in range(5):
        for x, y in get_batches():
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        saver.on_epoch_end(model, epoch)
        if is_main():
            print(f"epoch {epoch} loss {loss.item():.4f} kept {[p.name for p in saver.kept]}", flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
