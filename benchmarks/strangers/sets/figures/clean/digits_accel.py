"""Small digit model with a streaming accuracy class, on Accelerate."""
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, BATCH, LR = 3, 16, 5e-3


class Accuracy:
    def __init__(self):
        self.reset()

    def reset(self):
        self.preds, self.refs = [], []

    def update(self, preds, refs):
        self.preds.append(preds)
        self.refs.append(refs)

    def compute(self):
        preds, refs = torch.cat(self.preds), torch.cat(self.refs)
        return (preds == refs).float().mean().item()


def make_split(n, seed):
    protos = torch.randn(10, 36, generator=torch.Generator().manual_seed(50))
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 10, (n,), generator=g)
    return TensorDataset(protos[y] + 1.6 * torch.randn(n, 36, generator=g), y)


def train_epoch(accelerator, model, loader, optimizer):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
    return loss.item()


@torch.no_grad()
def evaluate(accelerator, model, loader, metric):
    model.eval()
    metric.reset()
    for x, y in loader:
        preds = model(x).argmax(dim=1)
        preds, refs = accelerator.gather_for_metrics((preds, y))
        metric.update(preds, refs)
    return metric.compute()


def main():
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(36, 48), nn.ReLU(), nn.Linear(48, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    train_loader = DataLoader(make_split(512, 1), BATCH, shuffle=True)
    test_loader = DataLoader(make_split(101, 2), BATCH)
    model, optimizer, train_loader, test_loader = accelerator.prepare(model, optimizer, train_loader, test_loader)
    metric = Accuracy()
    for epoch in range(EPOCHS):
        loss = train_epoch(accelerator, model, train_loader, optimizer)
        acc = evaluate(accelerator, model, test_loader, metric)
        accelerator.print(f"epoch {epoch} loss {loss:.4f} test_acc {acc:.4f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
