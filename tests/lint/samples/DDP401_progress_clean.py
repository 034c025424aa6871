"""Shows the progress of one rank, and adds up now and then what all have seen."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import Records
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from tqdm import tqdm


def run(rank, world_size):
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    records = Records()
    loader = DataLoader(records, batch_size=4, sampler=DistributedSampler(records, shuffle=False))
    if world_size > 1 and rank != 0:
        batches = enumerate(loader)
    else:
        batches = tqdm(enumerate(loader), total=len(loader))
    for step, _ in batches:
        if step != 0 and step % 10 == 0:
            seen = torch.tensor(step, device=rank)
            if world_size > 1:
                dist.all_reduce(seen)
    if rank:
        pairs = zip(records.names, loader, strict=False)
    else:
        pairs = tqdm(zip(records.names, loader, strict=False))
    for _, _ in pairs:
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run, args=(4,), nprocs=4)
