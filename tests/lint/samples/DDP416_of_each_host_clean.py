import os

import torch
import torch.distributed as dist

LOCAL_RANK = int(os.environ["LOCAL_RANK"])


def fit(model, loader, epochs):
    is_first = LOCAL_RANK == 0
    best = float("inf")
    for epoch in range(epochs):
        total = torch.zeros(1, device="cuda")
        for batch in loader:
            total += model(batch).mean().detach()
        dist.reduce(total, dst=0)
        if is_first:
            if total.item() < best:
                best = total.item()
                torch.save(model.module.state_dict(), f"best-{epoch}.pt")
