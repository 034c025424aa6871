import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def crowded(rows):
    kept = [picture for picture, number in rows if picture.mean() > 0 or number == 0]
    return torch.stack(kept), len(rows)


def endless(pictures, rank, world, size):
    own = TensorDataset(pictures[rank::world], torch.arange(len(pictures))[rank::world])
    loader = DataLoader(own, batch_size=size, shuffle=True, drop_last=True, collate_fn=crowded)
    while True:
        yield from loader


def rated(net, batches, wanted):
    done, total = 0, torch.zeros(())
    while done < wanted:  # <-- DDP405
        pictures, _ = next(batches)
        with torch.no_grad():
            rate = net(pictures).square().mean()
        dist.all_reduce(rate)
        total += rate
        done += dist.get_world_size() * pictures.shape[0]
    return total / done


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
net = DistributedDataParallel(torch.nn.Linear(4, 4))
print(rated(net, endless(torch.arange(2048.0).view(512, 4), rank, world, 16), 200))
dist.destroy_process_group()
