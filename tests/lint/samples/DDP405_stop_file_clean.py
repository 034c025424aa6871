import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def wait_for(file):
    while True:
        if os.path.exists(file):
            break
        time.sleep(10)


def train(net, loader, folder, epochs):
    wait_for(f"{folder}/data.pt")
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    stop = Path(folder) / "stop"
    for epoch in range(epochs):
        if os.path.exists(f"{folder}/{epoch}.done"):
            continue
        for batch in loader:
            loss = model(batch).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        asked = torch.tensor(float(stop.exists()))
        dist.broadcast(asked, src=0)
        if asked:
            break
