import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(loader, epochs):
    model = DistributedDataParallel(torch.nn.Linear(5, 3))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    used = set()
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        for x, y, i in loader:
            used.update(i.tolist())
            loss = torch.nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(f"rank {dist.get_rank()} loss {loss.item():.4f} distinct samples {len(used)} first {i[:4].tolist()}", flush=True)
