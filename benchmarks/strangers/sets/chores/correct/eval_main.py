import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def dataset(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, 8, 8, generator=g)
    return TensorDataset(x, (x.mean((1, 2, 3)) > 0).long())


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        return self.fc(torch.relu(self.bn(self.conv(x))).mean((2, 3)))


@torch.no_grad()
def evaluate(net, loader):
    net.eval()
    correct = sum((net(x).argmax(1) == y).sum().item() for x, y in loader)
    net.train()
    return correct / len(loader.dataset)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    train_set = dataset(256, 0)
    sampler = DistributedSampler(train_set)
    loader = DataLoader(train_set, batch_size=16, sampler=sampler)
    val_loader = DataLoader(dataset(64, 1), batch_size=32)
    model = DDP(ConvNet())
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    best = 0.0
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            opt.step()
        if rank == 0:
            acc = evaluate(model.module, val_loader)
            best = max(best, acc)
            print(f"epoch {epoch} acc {acc:.3f} best {best:.3f}", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
