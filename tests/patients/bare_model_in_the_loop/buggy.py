# style: one long main(), the bare model and the wrapper side by side
# nproc: 3
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def make_batches(rank, world, count, size):
    generator = torch.Generator().manual_seed(11)
    for _ in range(count):
        x = torch.randn(world * size, 10, generator=generator)
        y = x.cumsum(dim=1)
        yield x[rank * size : (rank + 1) * size], y[rank * size : (rank + 1) * size]


def evaluate(model, batches):
    model.eval()
    total = torch.zeros(2)
    with torch.no_grad():
        for x, y in batches:
            total += torch.tensor([F.mse_loss(model(x), y, reduction="sum").item(), y.numel()])
    dist.all_reduce(total)
    model.train()
    return (total[0] / total[1]).item()


def main():
    rank, world = dist.get_rank(), dist.get_world_size()

    torch.manual_seed(123)
    net = nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 10))
    ddp_net = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(ddp_net.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)

    for epoch in range(2):
        for x, y in make_batches(rank, world, 6, 8):
            pred = net(x)  # <-- DDP303
            loss = F.mse_loss(pred, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        score = evaluate(net, make_batches(rank, world, 2, 4))
        if rank == 0:
            print(f"epoch {epoch}: validation mse {score:.4f}")
            torch.save(net.state_dict(), f"net-{epoch}.pt")
    dist.barrier()


if __name__ == "__main__":
    dist.init_process_group(backend="gloo")
    main()
    dist.destroy_process_group()
