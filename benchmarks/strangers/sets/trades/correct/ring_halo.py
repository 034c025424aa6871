"""Heat equation net on a ring of strips: each process owns a strip of the rod
and swaps its border cells with its neighbours before the convolution.
"""
import torch
import torch.distributed as dist
import torch.nn as nn

HALO = 2


def swap_borders(strip):
    """strip: (B, n) -> (B, n + 2 * HALO), the rod is closed to a ring."""
    rank, world = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % world, (rank + 1) % world
    from_left = torch.empty(strip.size(0), HALO)
    from_right = torch.empty(strip.size(0), HALO)
    to_left = strip[:, :HALO].contiguous()
    to_right = strip[:, -HALO:].contiguous()
    work = [
        dist.isend(to_right, right, tag=1),
        dist.isend(to_left, left, tag=2),
        dist.irecv(from_left, left, tag=1),
        dist.irecv(from_right, right, tag=2),
    ]
    for w in work:
        w.wait()
    return torch.cat([from_left, strip, from_right], dim=1)


def simulate(u, steps):
    for _ in range(steps):
        u = u + 0.2 * (torch.roll(u, 1, -1) - 2 * u + torch.roll(u, -1, -1))
    return u


class Stencil(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 1, 2 * HALO + 1)

    def forward(self, padded):
        return self.conv(padded[:, None])[:, 0]


def sync_grads(net):
    handles = [(p, dist.all_reduce(p.grad, async_op=True)) for p in net.parameters()]
    for p, h in handles:
        h.wait()
        p.grad /= dist.get_world_size()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(2)
    net = Stencil()
    opt = torch.optim.Adam(net.parameters(), lr=2e-2)
    n = 16
    shared = torch.Generator().manual_seed(5)  # all processes see the same rods
    for step in range(150):
        rods = torch.randn(8, n * world, generator=shared)
        target = simulate(rods, 2)
        mine = slice(rank * n, (rank + 1) * n)
        loss = (net(swap_borders(rods[:, mine])) - target[:, mine]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        sync_grads(net)
        opt.step()
        if rank == step // 50 and step % 50 == 49:
            print(f"[{rank}] step {step} loss {loss.item():.5f}", flush=True)
    if rank == world - 1:
        taps = ", ".join(f"{v:.3f}" for v in net.conv.weight.flatten().tolist())
        print(f"learned stencil: {taps}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
