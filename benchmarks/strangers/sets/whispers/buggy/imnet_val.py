"""Image classification script with train() and validate() in the usual shape."""
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.parallel
import torch.utils.data
import torch.utils.data.distributed


class AverageMeter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n

    def all_reduce(self):
        total = torch.tensor([self.sum, self.count], dtype=torch.float64)
        dist.all_reduce(total)
        self.sum, self.count = total.tolist()

    @property
    def avg(self):
        return self.sum / self.count


def accuracy(output, target):
    return (output.argmax(1) == target).float().mean().item() * 100


def images(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 5, (n,), generator=g)
    x = torch.randn(n, 3, 16, 16, generator=g)
    x[torch.arange(n), y % 3] += (y.float() / 4).view(n, 1, 1)
    return torch.utils.data.TensorDataset(x, y)


def make_model():
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 5))


def train(loader, model, criterion, optimizer):
    model.train()
    losses = AverageMeter()
    for x, y in loader:
        loss = criterion(model(x), y)
        losses.update(loss.item(), len(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


def validate(loader, model, criterion):
    model.eval()
    top1, losses = AverageMeter(), AverageMeter()
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            losses.update(criterion(out, y).item(), len(y))
            top1.update(accuracy(out, y), len(y))
    top1.all_reduce()
    losses.all_reduce()
    return top1, losses


def main(epochs=2, batch_size=32):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    train_set, val_set = images(256, 1), images(1536, 2)
    train_sampler = torch.utils.data.distributed.DistributedSampler(train_set)
    train_loader = torch.utils.data.DataLoader(train_set, batch_size, sampler=train_sampler)
    val_loader = torch.utils.data.DataLoader(val_set, batch_size, shuffle=False)
    model = nn.parallel.DistributedDataParallel(make_model())
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(epochs):
        train_sampler.set_epoch(epoch)
        losses = train(train_loader, model, criterion, optimizer)
        start = time.perf_counter()
        top1, _ = validate(val_loader, model, criterion)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {losses.avg:.4f} * Acc@1 {top1.avg:.2f} "
                  f"(validation took {time.perf_counter() - start:.2f} s)", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
