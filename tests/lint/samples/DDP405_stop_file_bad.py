from pathlib import Path

import torch
from torch.nn.parallel import DistributedDataParallel


def train(net, loader, folder, epochs):
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    stop = Path(folder) / "stop"
    for _ in range(epochs):
        for batch in loader:
            loss = model(batch).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if stop.exists():  # <-- DDP405
            print("somebody wants us to stop")
            break
