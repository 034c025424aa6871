"""K-means on household survey vectors, started with mp.spawn."""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def households(rank, n=400):
    """The clusters are common, the sampled households are private to a process."""
    shared = torch.Generator().manual_seed(0)
    centres = 4 * torch.randn(5, 6, generator=shared)
    g = torch.Generator().manual_seed(10 + rank)
    size = n + 37 * rank
    pick = torch.randint(0, 5, (size,), generator=g)
    return centres[pick] + torch.randn(size, 6, generator=g)


class KMeans:
    def __init__(self, k, dim):
        self.centres = torch.empty(k, dim)

    def start(self, x):
        if dist.get_rank() == 0:
            g = torch.Generator().manual_seed(1)
            chosen = [x[0]]
            while len(chosen) < len(self.centres):
                gap = torch.cdist(x, torch.stack(chosen)).min(1).values ** 2
                chosen.append(x[torch.multinomial(gap, 1, generator=g)].squeeze(0))
            self.centres.copy_(torch.stack(chosen))
        dist.broadcast(self.centres, src=0)

    def step(self, x):
        gap, who = torch.cdist(x, self.centres).min(1)
        k, dim = self.centres.shape
        packed = torch.zeros(k, dim + 1)
        packed[:, :dim].index_add_(0, who, x)
        packed[:, dim].index_add_(0, who, torch.ones(len(x)))
        inertia = gap.pow(2).sum()
        work = dist.all_reduce(inertia, async_op=True)
        dist.all_reduce(packed)
        work.wait()
        filled = packed[:, dim] > 0
        fresh = packed[filled, :dim] / packed[filled, dim:]
        moved = (fresh - self.centres[filled]).norm()
        self.centres[filled] = fresh
        return inertia.item(), moved.item()


def worker(rank, world, port):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    x = households(rank)
    model = KMeans(5, x.shape[1])
    model.start(x)
    for it in range(30):
        inertia, moved = model.step(x)
        if rank == 0:
            print(f"iteration {it} inertia {inertia:.1f} moved {moved:.4f}", flush=True)
        if moved < 1e-3:
            break
    if rank == 0:
        torch.save(model.centres, "centres.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(3, port), nprocs=3)
