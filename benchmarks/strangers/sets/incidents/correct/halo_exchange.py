"""1D domain decomposition, one subdomain per rank, neighbours swap halo cells."""
import torch
import torch.distributed as dist
import torch.nn as nn


def exchange(left_edge, right_edge):
    rank, world = dist.get_rank(), dist.get_world_size()
    from_left, from_right = torch.zeros_like(left_edge), torch.zeros_like(right_edge)
    if rank % 2 == 0:
        if rank + 1 < world:
            dist.send(right_edge, rank + 1)
            dist.recv(from_right, rank + 1)
        if rank > 0:
            dist.send(left_edge, rank - 1)
            dist.recv(from_left, rank - 1)
    else:
        dist.recv(from_left, rank - 1)
        dist.send(left_edge, rank - 1)
        if rank + 1 < world:
            dist.recv(from_right, rank + 1)
            dist.send(right_edge, rank + 1)
    return from_left, from_right


class Stencil(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([0.2, 0.6, 0.2]))

    def forward(self, u, halo):
        l, r = halo
        padded = torch.cat([l, u, r])
        return self.w[0] * padded[:-2] + self.w[1] * padded[1:-1] + self.w[2] * padded[2:]


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = Stencil()
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    gen = torch.Generator().manual_seed(rank)
    u = torch.randn(32, generator=gen)
    for it in range(25):
        halo = exchange(u[:1].contiguous(), u[-1:].contiguous())
        target = 0.25 * torch.cat([halo[0], u[:-1]]) + 0.5 * u + 0.25 * torch.cat([u[1:], halo[1]])
        loss = (model(u, halo) - target).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
        opt.step()
        u = target
        if rank == 0 and it % 8 == 0:
            print(it, f"{loss.item():.6f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
