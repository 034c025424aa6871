# style: accelerate, gather in an evaluation loop
# nproc: 2
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def examples(count, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 6, generator=generator)
    return TensorDataset(x, (x[:, 0] > x[:, 1]).long())


def accuracy(accelerator, model, loader):
    model.eval()
    hits = seen = 0
    for x, y in loader:
        with torch.no_grad():
            answers = model(x).argmax(dim=1)
        answers, y = accelerator.gather_for_metrics((answers, y))
        hits += (answers == y).sum().item()
        seen += len(y)
    return hits / seen


def main():
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    train = DataLoader(examples(64, 0), batch_size=8, shuffle=True)
    valid = DataLoader(examples(21, 1), batch_size=4)
    model, optimizer, train, valid = accelerator.prepare(model, optimizer, train, valid)
    for epoch in range(2):
        model.train()
        for x, y in train:
            optimizer.zero_grad()
            accelerator.backward(nn.functional.cross_entropy(model(x), y))
            optimizer.step()
        accelerator.print(f"epoch {epoch}: {accuracy(accelerator, model, valid):.3f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
