# style: functions, label set from the data
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, 16), nn.ReLU())
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        return self.head(self.body(x))


def load_shard(rank):
    generator = torch.Generator().manual_seed(rank)
    labels = torch.arange(40) % (5 - rank)
    return torch.randn(40, 6, generator=generator) + labels[:, None], labels


def count_classes(labels):
    return len(labels.unique())


def train(model, x, y, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(epochs):
        for start in range(0, len(x), 10):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[start : start + 10]), y[start : start + 10])
            loss.backward()
            optimizer.step()
    return loss.item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    x, y = load_shard(rank)
    torch.manual_seed(0)
    classes = count_classes(y)
    model = DDP(Net(x.shape[1], classes))  # <-- DDP310
    loss = train(model, x, y, epochs=2)
    if rank == 0:
        print(f"{classes} classes, loss {loss:.3f}")
    dist.barrier()
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
