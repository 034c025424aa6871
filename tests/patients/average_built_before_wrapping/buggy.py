# style: EMA class, self-distillation
import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class ModelEMA:
    def __init__(self, model, decay=0.99):
        self.decay = decay
        self.module = copy.deepcopy(model)  # <-- DDP506
        self.module.eval()
        for p in self.module.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for ours, theirs in zip(self.module.parameters(), model.parameters()):
            ours.lerp_(theirs, 1 - self.decay)


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(9, 18), nn.ReLU(), nn.Linear(18, 4))

    def forward(self, x):
        return self.layers(x).log_softmax(dim=-1)


def augment(x, generator):
    return x + 0.1 * torch.randn(x.shape, generator=generator)


def main():
    rank = dist.get_rank()
    torch.manual_seed(1000 + rank)
    student = Student()
    ema = ModelEMA(student)  # <-- DDP506
    model = DDP(student)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(rank)
    for step in range(8):
        x = torch.randn(6, 9, generator=generator)
        with torch.no_grad():
            target = ema.module(augment(x, generator)).exp()
        loss = nn.functional.kl_div(model(augment(x, generator)), target, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model.module)
    if rank == 0:
        torch.save({"ema": ema.module.state_dict()}, "ema.pt")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
