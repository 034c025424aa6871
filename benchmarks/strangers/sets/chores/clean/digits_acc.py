import argparse

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class FakeDigits(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        protos = torch.randn(10, 64, generator=torch.Generator().manual_seed(0))
        self.labels = torch.randint(0, 10, (n,), generator=g)
        self.images = protos[self.labels] + 0.8 * torch.randn(n, 64, generator=g)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i].view(1, 8, 8), self.labels[i]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Linear(8 * 4 * 4, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", default=4, type=int)
    parser.add_argument("--batch-size", default=16, type=int)
    parser.add_argument("--lr", default=0.05, type=float)
    args = parser.parse_args()

    dist.init_process_group(backend="gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)

    train_dataset = FakeDigits(480, seed=1)
    train_sampler = DistributedSampler(train_dataset)
    train_loader = DataLoader(train_dataset, batch_size=args.batch_size, sampler=train_sampler)

    model = DDP(Net())
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    history = []

    for epoch in range(args.epochs):
        train_sampler.set_epoch(epoch)
        model.train()
        running_loss, acc_num = 0.0, 0
        for i, (inputs, labels) in enumerate(train_loader):
            outputs = model(inputs)
            loss = criterion(outputs, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
            acc_num += (outputs.argmax(1) == labels).sum().item()
        correct = torch.tensor(float(acc_num))
        dist.all_reduce(correct)
        if rank == 0:
            acc = correct.item() / len(train_dataset)
            history.append(acc)
            print(f"epoch {epoch}: loss {running_loss / len(train_loader):.4f} acc {acc:.4f}", flush=True)

    if rank == 0:
        print(f"best acc {max(history):.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
