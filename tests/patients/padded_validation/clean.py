# style: main() with evaluate(), two samplers
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset


class Digits(Dataset):
    def __init__(self, n, seed):
        generator = torch.Generator().manual_seed(seed)
        self.data = torch.rand(n, 16, generator=generator)
        self.targets = self.data[:, :4].argmax(dim=1)

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        return self.data[i], self.targets[i]


def loader_for(dataset, batch_size, training):
    if not training:
        own = range(dist.get_rank(), len(dataset), dist.get_world_size())
        return DataLoader(Subset(dataset, own), batch_size=batch_size)
    sampler = DistributedSampler(dataset, shuffle=training)
    return DataLoader(dataset, batch_size=batch_size, sampler=sampler)


def evaluate(model, loader):
    model.eval()
    correct = torch.zeros(1)
    count = torch.zeros(1)
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(dim=1) == y).sum()
            count += len(y)
    dist.all_reduce(correct, op=dist.ReduceOp.SUM)
    dist.all_reduce(count, op=dist.ReduceOp.SUM)
    return (correct / count).item()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    train_loader = loader_for(Digits(64, seed=0), 8, training=True)
    val_loader = loader_for(Digits(37, seed=1), 8, training=False)
    model = DDP(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        train_loader.sampler.set_epoch(epoch)
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        accuracy = evaluate(model, val_loader)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
