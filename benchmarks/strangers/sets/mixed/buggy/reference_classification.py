"""Classification reference: train, then report top-1 over the validation split."""
import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.utils.data as tud


class SmoothedValue:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.total += value * n
        self.count += n

    def synchronize_between_processes(self):
        t = torch.tensor([self.count, self.total], dtype=torch.float64)
        dist.all_reduce(t)
        self.count, self.total = int(t[0]), t[1].item()

    @property
    def global_avg(self):
        return self.total / max(self.count, 1)


class MetricLogger:
    def __init__(self):
        self.meters = {}

    def __getitem__(self, name):
        return self.meters.setdefault(name, SmoothedValue())

    def synchronize_between_processes(self):
        for name in sorted(self.meters):
            self.meters[name].synchronize_between_processes()


def load_data(args):
    g = torch.Generator().manual_seed(args.seed)
    w = torch.randn(10, 5, generator=g)
    splits = []
    for n in (args.train_size, args.val_size):
        x = torch.randn(n, 10, generator=g)
        splits.append(tud.TensorDataset(x, (x @ w + 0.8 * torch.randn(n, 5, generator=g)).argmax(1)))
    dataset, dataset_test = splits
    train_sampler = tud.distributed.DistributedSampler(dataset, seed=args.seed)
    test_sampler = tud.distributed.DistributedSampler(dataset_test, shuffle=False)
    return dataset, dataset_test, train_sampler, test_sampler


def train_one_epoch(model, criterion, optimizer, loader):
    model.train()
    for image, target in loader:
        loss = criterion(model(image), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluate(model, criterion, loader):
    model.eval()
    log = MetricLogger()
    with torch.inference_mode():
        for image, target in loader:
            output = model.module(image)
            log["loss"].update(criterion(output, target).item(), len(target))
            log["acc1"].update((output.argmax(1) == target).float().mean().item() * 100, len(target))
    log.synchronize_between_processes()
    if dist.get_rank() == 0:
        acc, loss = log["acc1"], log["loss"]
        print(f"Test: Acc@1 {acc.global_avg:.3f} Loss {loss.global_avg:.4f}", flush=True)
    return log["acc1"].global_avg


def main(args):
    dataset, dataset_test, train_sampler, test_sampler = load_data(args)
    data_loader = tud.DataLoader(dataset, batch_size=args.batch_size, sampler=train_sampler)
    data_loader_test = tud.DataLoader(dataset_test, batch_size=args.batch_size, sampler=test_sampler)
    torch.manual_seed(args.seed)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(10, 20), nn.GELU(), nn.Linear(20, 5)))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    start = time.time()
    for epoch in range(args.epochs):
        train_sampler.set_epoch(epoch)
        train_one_epoch(model, criterion, optimizer, data_loader)
        evaluate(model, criterion, data_loader_test)
    if dist.get_rank() == 0:
        print(f"Training time {time.time() - start:.1f}s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="classification")
    parser.add_argument("--train-size", default=192, type=int)
    parser.add_argument("--val-size", default=41, type=int)
    parser.add_argument("--batch-size", default=8, type=int)
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--lr", default=0.1, type=float)
    parser.add_argument("--seed", default=1, type=int)
    opts = parser.parse_args()
    dist.init_process_group("gloo")
    main(opts)
    dist.destroy_process_group()
