"""Centres of clusters, which the first rank moves and all ranks then agree on."""

import torch
import torch.distributed as dist


def assign(rows, centres):
    return torch.cdist(rows, centres).argmin(1)


def share(sums, counts):
    dist.all_reduce(sums)
    dist.all_reduce(counts)


def told(centres, sums, counts, is_first):
    if is_first:  # <-- DDP402
        dist.broadcast(centres, src=0)
        share(sums, counts)
    else:
        share(sums, counts)
        dist.broadcast(centres, src=0)
    return centres


def main(rounds=20):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    rows = torch.rand(500, 3, generator=torch.Generator().manual_seed(rank))
    centres = torch.rand(7, 3)
    for _ in range(rounds):
        mine = assign(rows, centres)
        sums = torch.zeros(7, 3).index_add_(0, mine, rows)
        counts = torch.bincount(mine, minlength=7).float()
        centres = told(centres, sums, counts, rank == 0)


if __name__ == "__main__":
    main()
