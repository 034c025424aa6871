# style: functions, train/validation split
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler, random_split


class Regression(Dataset):
    def __init__(self, n):
        generator = torch.Generator().manual_seed(7)
        self.x = torch.rand(n, 4, generator=generator)
        self.y = self.x.prod(dim=1, keepdim=True)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return {"x": self.x[index], "y": self.y[index]}


def set_seed(seed):
    torch.manual_seed(seed + dist.get_rank())


def build_loaders(batch_size):
    dataset = Regression(80)
    n_val = len(dataset) // 5
    train_set, val_set = random_split(dataset, [len(dataset) - n_val, n_val])  # <-- DDP206
    sampler = DistributedSampler(train_set)
    train_loader = DataLoader(train_set, batch_size=batch_size, sampler=sampler)
    return train_loader, DataLoader(val_set, batch_size=batch_size)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    error = sum(nn.functional.mse_loss(model(b["x"]), b["y"], reduction="sum") for b in loader)
    return error.item() / len(loader.dataset)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    set_seed(0)
    model = DDP(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train_loader, val_loader = build_loaders(8)
    best = float("inf")
    for epoch in range(3):
        train_loader.sampler.set_epoch(epoch)
        model.train()
        for batch in train_loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(batch["x"]), batch["y"]).backward()
            optimizer.step()
        if rank == 0:
            score = validate(model.module, val_loader)
            best = min(best, score)
            print(f"epoch {epoch}: validation {score:.4f} (best {best:.4f})")
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
