import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Linear(32, 4), nn.Linear(4, 32)

    def forward(self, x):
        code = self.down(x)
        return {"rebuilt": (self.up(code) - x).square().mean(), "sparse": code.abs().mean()}


def epoch(ddp, optimizer, batches):
    history = []
    for x in batches:
        parts = ddp(x)
        loss = parts["rebuilt"] + 0.01 * parts["sparse"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append({key: part.item() for key, part in parts.items()})
    return history


dist.init_process_group("gloo")
model = DDP(Autoencoder())
epoch(model, torch.optim.SGD(model.parameters(), lr=0.1), [torch.rand(8, 32)] * 10)
