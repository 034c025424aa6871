import torch
from torch.nn.parallel import DistributedDataParallel


def fit(tracker, steps=20):
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(3, 1))
    opt = torch.optim.Adagrad(model.parameters(), lr=0.3)
    g = torch.Generator().manual_seed(tracker.rank)
    for step in range(steps):
        x = torch.randn(8, 3, generator=g)
        loss = (model(x) - x[:, :1]).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        tracker.log(step=step, loss=loss.item())
