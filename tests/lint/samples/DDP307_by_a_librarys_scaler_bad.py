import math

import torch
import torch.distributed as dist
from timm.utils import NativeScaler
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Distilled(nn.Module):
    def __init__(self, base, teacher):
        super().__init__()
        self.base, self.teacher = base, teacher

    def forward(self, x, out, y):
        with torch.no_grad():
            wanted = self.teacher(x)
        return self.base(out, y) + (out - wanted).square().mean()


def train_one_epoch(model, criterion, loader, optimizer, scaler):
    model.train()
    for x, y in loader:
        loss = criterion(x, model(x), y)
        if not math.isfinite(loss.item()):
            continue  # <-- DDP307
        optimizer.zero_grad()
        scaler(loss, optimizer, clip_grad=1.0, parameters=model.parameters())


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = torch.zeros(2)
    for x, y in loader:
        right += torch.stack([(model(x).argmax(1) == y).sum(), torch.tensor(len(y))])
    dist.all_reduce(right)
    return (right[0] / right[1]).item()


def main():
    dist.init_process_group("gloo")
    seen = TensorDataset(torch.randn(512, 8), torch.randint(0, 4, (512,)))
    held = TensorDataset(torch.randn(100, 8), torch.randint(0, 4, (100,)))
    sampler_train = DistributedSampler(seen, shuffle=True)
    train = DataLoader(seen, batch_size=16, sampler=sampler_train, drop_last=True)
    kept = DataLoader(held, batch_size=16)
    torch.manual_seed(0)
    teacher = nn.Linear(8, 4)
    teacher.load_state_dict(torch.load("teacher.pt"))
    model = DistributedDataParallel(nn.Linear(8, 4))
    criterion = Distilled(nn.CrossEntropyLoss(), teacher)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = NativeScaler()
    for epoch in range(5):
        sampler_train.set_epoch(epoch)
        train_one_epoch(model, criterion, train, optimizer, scaler)
        accuracy = evaluate(model.module, kept)
        if dist.get_rank() == 0:
            print(epoch, accuracy)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
