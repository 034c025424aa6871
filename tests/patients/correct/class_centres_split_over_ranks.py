# style: metric learning, DDP backbone, each rank holds a part of the classes
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class GatherLayer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        parts = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, grad):
        dist.all_reduce(grad)
        return grad.chunk(dist.get_world_size())[dist.get_rank()]


class PartialCentres(nn.Module):
    """Distances to the class centres that live on this rank."""

    def __init__(self, width, classes_here):
        super().__init__()
        self.centres = nn.Parameter(torch.randn(classes_here, width) * 0.1)

    def forward(self, features, labels):
        first = dist.get_rank() * len(self.centres)
        distances = torch.cdist(GatherLayer.apply(features), self.centres)
        mine = torch.arange(first, first + len(self.centres))
        target = (labels.unsqueeze(1) == mine).float()
        return (target * distances + (1 - target) * (1 - distances).relu()).mean()


def gather_labels(labels):
    parts = [torch.zeros_like(labels) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, labels)
    return torch.cat(parts)


def train(steps=8):
    torch.manual_seed(30)
    backbone = DDP(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 4)))
    centres = PartialCentres(4, classes_here=3)
    optimizer = torch.optim.SGD([*backbone.parameters(), *centres.parameters()], lr=0.1)
    source = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(steps):
        x = torch.randn(5, 6, generator=source)
        labels = torch.randint(0, 3 * dist.get_world_size(), (5,), generator=source)
        loss = centres(backbone(x), gather_labels(labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    loss = train()
    if dist.get_rank() == 0:
        print(f"{loss:.4f}")
    dist.destroy_process_group()
