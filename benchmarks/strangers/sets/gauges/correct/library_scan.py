"""Compound library screening: shards of molecules may be damaged on disk.

    torchrun --nproc_per_node=2 library_scan.py
"""
import io

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class DamagedShard(Exception):
    pass


def blob(rank, index):
    """Bytes of a shard as the file server gives them."""
    g = torch.Generator().manual_seed(31 * index + rank)
    x = torch.randn(48, 16, generator=g)
    y = (x[:, :4].sum(1) > 0).float()
    buf = io.BytesIO()
    torch.save({"x": x, "y": y}, buf)
    raw = buf.getvalue()
    return raw[: len(raw) // 2] if (rank, index) in {(1, 2), (0, 5)} else raw


def read_shard(rank, index):
    try:
        return torch.load(io.BytesIO(blob(rank, index)), weights_only=True)
    except Exception as e:
        raise DamagedShard(f"shard {index} of process {rank}") from e


def try_read(rank, index):
    """Returns the shard, or None on every process when it is damaged on any."""
    shard, note = None, None
    try:
        shard = read_shard(rank, index)
    except DamagedShard as e:
        note = str(e)
    notes = [None] * dist.get_world_size()
    dist.all_gather_object(notes, note)
    damaged = [n for n in notes if n]
    if damaged and rank == 0:
        print("left out:", "; ".join(damaged))
    return None if damaged else shard


def main(shards=8):
    rank = dist.get_rank()
    model = DDP(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    used = 0
    for index in range(shards):
        shard = try_read(rank, index)
        if shard is None:
            continue
        used += 1
        for x, y in zip(shard["x"].split(12), shard["y"].split(12)):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"shard {index} bce {loss.item():.4f}")
    assert used == shards - 2
    dist.barrier()


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
