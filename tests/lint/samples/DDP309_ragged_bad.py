"""Point clouds of different size: the loss is a sum over points by the batch's own number."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Clouds(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(0)
        sizes = torch.randint(5, 60, (n,), generator=g).tolist()
        self.clouds = [torch.randn(k, 3, generator=g) for k in sizes]

    def __len__(self):
        return len(self.clouds)

    def __getitem__(self, i):
        return self.clouds[i], self.clouds[i].norm(dim=1)


def stack(items):
    return torch.cat([p for p, _ in items]), torch.cat([y for _, y in items])


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = Clouds(80)
    loader = DataLoader(data, 4, sampler=DistributedSampler(data), collate_fn=stack)
    model = DDP(nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1)))
    opt = torch.optim.Adam(model.parameters())
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for points, y in loader:
            error = (model(points).squeeze(1) - y).square()
            loss = error.sum() / points.shape[0]  # <- DDP309
            opt.zero_grad()
            loss.backward()
            opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
