# style: functions, Join
# nproc: 3
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


def batches(rank):
    generator = torch.Generator().manual_seed(rank)
    for _ in range(4 + rank):
        x = torch.randn(8, 5, generator=generator)
        yield x, x.sum(1, keepdim=True)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(5, 9), nn.ReLU(), nn.Linear(9, 1)))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-2)
    for _ in range(2):
        with Join([model, optimizer]):
            for x, y in batches(rank):
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
    seen = torch.tensor(4.0 + rank)
    dist.all_reduce(seen)
    if rank == 0:
        print(f"{int(seen)} batches an epoch, loss {loss.item():.3f}")
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
