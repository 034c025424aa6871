# style: ZeroRedundancyOptimizer, warm-up schedule, clipping
# nproc: 3
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import LambdaLR


class Mixer(nn.Module):
    def __init__(self, width=10, depth=3):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = x + torch.nn.functional.gelu(layer(norm(x)))
        return self.out(x)


def train(steps=9):
    torch.manual_seed(5)
    model = DDP(Mixer())
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=torch.optim.AdamW, lr=3e-3
    )
    schedule = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
    source = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(steps):
        x = torch.randn(6, 10, generator=source)
        loss = nn.functional.cross_entropy(model(x), (x.sum(dim=1) > 0).long())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    optimizer.consolidate_state_dict(to=0)
    return loss.item()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    loss = train()
    if dist.get_rank() == 0:
        print("done", round(loss, 4))
    dist.destroy_process_group()
