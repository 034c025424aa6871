# style: functions, ReduceLROnPlateau and validation on shards
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, Subset, TensorDataset


def build_data(rank, world):
    generator = torch.Generator().manual_seed(21)
    x = torch.randn(120, 7, generator=generator)
    y = torch.where(x[:, :1] > 0, x[:, 1:2], -x[:, 2:3])
    train = TensorDataset(x[:80], y[:80])
    valid = TensorDataset(x[80:], y[80:])
    shard = lambda data: Subset(data, range(rank, len(data), world))
    return (
        DataLoader(shard(train), batch_size=10, shuffle=True),
        DataLoader(shard(valid), batch_size=10),
    )


def train(model, loader, optimizer):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


@torch.no_grad()
def validate(model, loader):
    model.eval()
    total = torch.zeros(2, dtype=torch.float64)
    for x, y in loader:
        total[0] += nn.functional.mse_loss(model(x), y, reduction="sum")
        total[1] += y.numel()
    return total


def main():
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(8)
    model = DDP(nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    scheduler = ReduceLROnPlateau(optimizer, factor=0.3, patience=0, threshold=0.05)
    train_loader, valid_loader = build_data(rank, world)
    for epoch in range(12):
        train(model, train_loader, optimizer)
        total = validate(model, valid_loader)
        dist.all_reduce(total)
        score = (total[0] / total[1]).item()
        scheduler.step(score)
        if rank == 0:
            print(f"epoch {epoch}: {score:.4f} lr {optimizer.param_groups[0]['lr']:.4f}")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
