import torch
import torch.distributed as dist


def swap_edges(field):
    """Give both neighbours the outermost rows, and take theirs."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    above, below = torch.empty_like(field[0]), torch.empty_like(field[0])
    if rank < last:
        dist.send(field[-2], rank + 1)
    if rank > 0:
        dist.send(field[1], rank - 1)  # <-- DDP417
        dist.recv(above, rank - 1)
    if rank < last:
        dist.recv(below, rank + 1)
    return above, below


def swap(t):
    """Of the first two alone, which part by a return."""
    rank = dist.get_rank()
    if rank > 1:
        return t
    if rank == 0:
        dist.recv(t, 1)
        dist.send(t, 1)
        return t
    dist.recv(t, 0)  # <-- DDP417
    dist.send(t, 0)
    return t


if __name__ == "__main__":
    dist.init_process_group("gloo")
    part = swap(torch.zeros(8, 8))
    for _ in range(20):
        part[0], part[-1] = swap_edges(part)
