import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from cache import DIM, SPEAKERS, global_norm, open_cache


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    where = [None]
    if rank == 0:
        where[0] = tempfile.mkdtemp(prefix="spk_")
    dist.broadcast_object_list(where, src=0)
    x, y = open_cache(where[0])
    mean, std = global_norm(x, rank, world)
    data = TensorDataset((x - mean) / std, y)
    torch.manual_seed(7)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(DIM, 32), nn.ReLU(), nn.Linear(32, SPEAKERS)))
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    sampler = DistributedSampler(data, seed=7)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        stat = torch.zeros(2)
        for a, b in DataLoader(data, 10, sampler=sampler):
            out = net(a)
            loss = nn.functional.cross_entropy(out, b)
            opt.zero_grad()
            loss.backward()
            opt.step()
            stat += torch.tensor([(out.argmax(1) == b).sum().item(), float(len(b))])
        dist.all_reduce(stat)
        if rank == 0:
            print(f"epoch {epoch} acc {(stat[0] / stat[1]).item():.3f}", flush=True)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(where[0])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
