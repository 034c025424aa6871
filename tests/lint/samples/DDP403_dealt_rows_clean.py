import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

WIDTH = 16


def sorting_table(cell, ranks):
    """Particles go to the rank that keeps their cell."""
    leaving = torch.zeros(ranks, dtype=torch.long)
    for owner in range(ranks):
        leaving[owner] = (cell % ranks == owner).sum()
    arriving = torch.empty_like(leaving)
    dist.all_to_all_single(arriving, leaving)
    return leaving.tolist(), arriving.tolist()


def migrate(particles, cell, ranks):
    leaving, arriving = sorting_table(cell, ranks)
    newcomers = particles.new_empty((sum(arriving), WIDTH))
    dist.all_to_all_single(
        newcomers,
        particles[cell.argsort()],
        output_split_sizes=arriving,
        input_split_sizes=leaving,
    )
    back = torch.empty_like(particles)
    dist.all_to_all_single(back, newcomers, leaving, arriving)
    return back


def main(steps=40):
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    push = DistributedDataParallel(nn.Linear(WIDTH, WIDTH))
    downhill = torch.optim.SGD(push.parameters(), lr=0.01)
    for _ in range(steps):
        particles = torch.randn(200, WIDTH)
        with torch.no_grad():
            particles = migrate(particles, torch.randint(0, 64, (200,)), ranks)
        downhill.zero_grad()
        (push(particles) - particles.roll(1, 1)).pow(2).mean().backward()
        downhill.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
