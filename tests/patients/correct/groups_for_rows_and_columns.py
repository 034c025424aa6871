# style: two-dimensional groups, hybrid parallelism
# nproc: 4
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def make_groups(rank):
    rows = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    columns = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    return rows[rank // 2], columns[rank % 2]


class Half(nn.Module):
    """One column of a linear layer split over a row of ranks."""

    def __init__(self, column):
        super().__init__()
        torch.manual_seed(10 + column)
        self.layer = nn.Linear(3, 4 + column)

    def forward(self, x):
        return self.layer(x)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    row, column = make_groups(rank)
    model = DDP(Half(rank % 2), process_group=column)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank // 2)
    for step in range(6):
        x = torch.randn(8, 6, generator=generator)
        partial = model(x[:, 3 * (rank % 2) :][:, :3])
        norm = partial.detach().pow(2).sum()
        dist.all_reduce(norm, group=row)
        loss = partial.pow(2).mean() / (1 + norm)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank % 2 == 0 and step % 2 == 0:
            leader = loss.detach().clone()
            dist.broadcast(leader, src=0, group=column) if rank in (0, 2) else None
    if rank < 2:
        share = torch.full((2,), float(rank))
        dist.all_reduce(share, group=row)
    dist.barrier()
    if rank == 0:
        print(f"loss {loss.item():.5f}")
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
