"""Rounds gradients to bfloat16 in an own communication hook, which divides before it reduces."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def compress_hook(group, bucket):
    small = bucket.buffer().to(torch.bfloat16).div_(dist.get_world_size(group)).float()
    work = dist.all_reduce(small, group=group, async_op=True)

    def decompress(fut):
        full = bucket.buffer()
        full.copy_(fut.value()[0])
        return full

    return work.get_future().then(decompress)


def main(steps=30):
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5)), bucket_cap_mb=1)
    model.register_comm_hook(dist.group.WORLD, compress_hook)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    g = torch.Generator().manual_seed(rank)
    for step in range(steps):
        y = torch.randint(0, 5, (24,), generator=g)
        x = 2 * torch.eye(20)[y] + torch.randn(24, 20, generator=g)
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
