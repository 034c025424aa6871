# style: post-local SGD by torch's own averager, after a warm-up with DDP
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import (
    PostLocalSGDState,
    post_localSGD_hook,
)
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

WARM_UP = 4


def batches(rank, count):
    generator = torch.Generator().manual_seed(rank)
    for _ in range(count):
        x = torch.randn(6, 9, generator=generator)
        yield x, x.sort(dim=1).values


def train(steps=20):
    torch.manual_seed(2)
    model = DDP(nn.Sequential(nn.Linear(9, 18), nn.ReLU(), nn.Linear(18, 9)))
    alone = [dist.new_group([rank]) for rank in range(dist.get_world_size())]
    state = PostLocalSGDState(None, alone[dist.get_rank()], start_localSGD_iter=WARM_UP)
    model.register_comm_hook(state, post_localSGD_hook)
    optimizer = PostLocalSGDOptimizer(
        optim=torch.optim.SGD(model.parameters(), lr=0.05),
        averager=PeriodicModelAverager(period=3, warmup_steps=WARM_UP),
    )
    for x, y in batches(dist.get_rank(), steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    loss = train()
    if dist.get_rank() == 0:
        print(loss)
    dist.destroy_process_group()
