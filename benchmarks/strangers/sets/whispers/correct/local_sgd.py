"""Local SGD: replicas take eight steps on their own, then the weights are averaged."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn

WORLD = int(os.environ.get("WORLD_SIZE", 1))


@torch.no_grad()
def average_weights(net, opt):
    tensors = list(net.parameters()) + [s["momentum_buffer"] for s in opt.state.values() if "momentum_buffer" in s]
    flat = torch.cat([t.reshape(-1) for t in tensors])
    dist.all_reduce(flat)
    flat.div_(WORLD)
    for t, piece in zip(tensors, flat.split([t.numel() for t in tensors])):
        t.copy_(piece.view_as(t))


def shard(rank):
    g = torch.Generator().manual_seed(rank)
    while True:
        x = torch.randn(16, 4, generator=g)
        yield x, x.abs().sum(1, keepdim=True)


def main(rounds=10, local_steps=8):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    stream = shard(rank)
    for r in range(rounds):
        for _ in range(local_steps):
            x, y = next(stream)
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        average_weights(net, opt)
        both = loss.detach().clone()
        dist.all_reduce(both, op=dist.ReduceOp.AVG if dist.get_backend() == "nccl" else dist.ReduceOp.SUM)
        if rank == 0 and r % 3 == 0:
            print(f"round {r} loss {both.item() / (1 if dist.get_backend() == 'nccl' else WORLD):.4f}", flush=True)
    if rank == 0:
        torch.save(net.state_dict(), "net.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
