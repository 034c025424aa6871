import torch
import torch.distributed as dist
import torch.nn.functional as F


class Patience:
    def __init__(self, limit):
        self.limit = limit
        self.best = float("inf")
        self.bad = 0

    def update(self, value):
        if value < self.best - 1e-3:
            self.best = value
            self.bad = 0
        else:
            self.bad += 1
        return self.bad >= self.limit


def train_one_epoch(model, loader, opt):
    model.train()
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    total, count = 0.0, 0
    for x, y in loader:
        total += F.cross_entropy(model.module(x), y, reduction="sum").item()
        count += len(y)
    return total / count


def fit(model, train_dl, dev_dl, max_epochs, patience, lr):
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    stopper = Patience(patience)
    history = []
    for epoch in range(max_epochs):
        train_one_epoch(model, train_dl, opt)
        dev_loss = evaluate(model, dev_dl)
        history.append(dev_loss)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} dev {dev_loss:.4f}", flush=True)
        if stopper.update(dev_loss):
            break
    return history
