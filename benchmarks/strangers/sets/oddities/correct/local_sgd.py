"""Each process trains alone for k steps; then weights, momentum and norm statistics are averaged."""
import torch
import torch.distributed as dist
from torch import nn


def average(tensors):
    work = [dist.all_reduce(t, async_op=True) for t in tensors]
    for w in work:
        w.wait()
    for t in tensors:
        t /= dist.get_world_size()


@torch.no_grad()
def meet(net, opt):
    tensors = [p.data for p in net.parameters()]
    tensors += [b for b in net.buffers() if b.is_floating_point()]
    tensors += [opt.state[p]["momentum_buffer"] for p in net.parameters()]
    average(tensors)


def main(k=5, rounds=8):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(9, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    g = torch.Generator().manual_seed(rank)
    for r in range(rounds):
        for _ in range(k):
            x = torch.randn(24, 9, generator=g)
            loss = (net(x) - x.std(1, keepdim=True)).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        meet(net, opt)
    check = torch.stack([p.detach().norm() for p in net.parameters()]).sum()
    print(f"rank {rank} loss {loss.item():.4f} weights {check:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
