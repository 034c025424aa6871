"""Text-to-video toy training loop with named timers around the phases of a step."""
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Coordinator:
    def __init__(self):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def is_master(self):
        return self.rank == 0

    def block_all(self):
        dist.barrier()


class Timer:
    def __init__(self, name, coordinator):
        self.name, self.coordinator, self.total = name, coordinator, 0.0

    def __enter__(self):
        self.coordinator.block_all()
        self.start = time.time()
        return self

    def __exit__(self, *exc):
        self.coordinator.block_all()
        self.total += time.time() - self.start


class ClipStore:
    """clips are decoded on the fly, short and long ones alternate"""

    def __init__(self, rank):
        self.rank, self.g = rank, torch.Generator().manual_seed(rank)

    def load(self, step):
        time.sleep(0.015 if (step + self.rank) % 2 else 0.001)
        return torch.randn(4, 8, 24, generator=self.g)

    def encode_text(self, step):
        time.sleep(0.001 if (step + self.rank) % 2 else 0.015)
        return torch.randn(4, 1, 24, generator=self.g)


class VideoNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.rnn, self.out = nn.Linear(24, 32), nn.GRU(32, 32, batch_first=True), nn.Linear(32, 24)

    def forward(self, clip, text):
        return self.out(self.rnn(self.inp(clip + text))[0])


def main(cfg):
    coordinator = Coordinator()
    torch.manual_seed(cfg["seed"])
    model = DDP(VideoNet())
    opt = torch.optim.AdamW(model.parameters(), lr=cfg["lr"])
    store = ClipStore(coordinator.rank)
    timers = {k: Timer(k, coordinator) for k in ("load", "text", "forward", "backward", "update")}
    begin = time.time()
    for step in range(cfg["steps"]):
        with timers["load"]:
            clip = store.load(step)
        with timers["text"]:
            text = store.encode_text(step)
        with timers["forward"]:
            loss = (model(clip, text) - clip).pow(2).mean()
        with timers["backward"]:
            opt.zero_grad()
            loss.backward()
        with timers["update"]:
            opt.step()
        if coordinator.is_master() and cfg["record_time"]:
            print({k: round(t.total, 3) for k, t in timers.items()}, flush=True)
    if coordinator.is_master():
        print(f"loss {loss.item():.4f}; {(time.time() - begin) / cfg['steps'] * 1000:.1f} ms per step", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main({"seed": 1, "lr": 1e-3, "steps": 40, "record_time": False})
    dist.destroy_process_group()
