"""Expert-parallel layer: tokens travel to the worker that owns their expert, counts first, then payload."""
import torch
import torch.distributed as dist
import torch.nn as nn


class Expert(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        return x + self.ff(x)


def exchange(parcels, room):
    rank, world = dist.get_rank(), dist.get_world_size()
    padded = [torch.cat([p, p.new_zeros(room - len(p), p.size(1))]) for p in parcels]
    inbox = [torch.empty_like(padded[0]) for _ in range(world)]
    inbox[rank] = padded[rank]
    pending = []
    for peer in range(world):
        if peer != rank:
            pending.append(dist.isend(padded[peer].contiguous(), dst=peer))
            pending.append(dist.irecv(inbox[peer], src=peer))
    for work in pending:
        work.wait()
    return torch.stack(inbox)


def route(x, router):
    owner = router(x).argmax(1)
    world = dist.get_world_size()
    parcels = [x[owner == r] for r in range(world)]
    counts = torch.tensor([len(p) for p in parcels])
    table = [torch.empty_like(counts) for _ in range(world)]
    dist.all_gather(table, counts)
    table = torch.stack(table)
    return parcels, table[:, dist.get_rank()], int(table.max())


def run(steps=8, dim=12):
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(70)
    router = nn.Linear(dim, world).requires_grad_(False)
    experts = [Expert(dim) for _ in range(world)]
    mine = experts[rank]
    optim = torch.optim.SGD(mine.parameters(), lr=0.05)
    gen = torch.Generator().manual_seed(71 + rank)
    for step in range(steps):
        x = torch.randn(20, dim, generator=gen)
        with torch.no_grad():
            parcels, arriving, room = route(x, router)
            tokens = exchange(parcels, max(room, 1))
        work = torch.cat([tokens[r, :n] for r, n in enumerate(arriving.tolist())])
        total = torch.tensor(float(len(work)))
        dist.all_reduce(total)
        if len(work):
            loss = (mine(work) - work.roll(1, 1)).pow(2).mean(1).sum() / total
            optim.zero_grad()
            loss.backward()
            optim.step()
    print(f"rank {rank} owns one expert, last step it saw {len(work)} of {int(total)} tokens", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run()
    dist.barrier()
    dist.destroy_process_group()
