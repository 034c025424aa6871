# style: LBFGS with a closure, functions
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def data(rank, world):
    generator = torch.Generator().manual_seed(12)
    x = torch.randn(24 * world, 5, generator=generator)
    y = torch.sin(x).sum(dim=1, keepdim=True)
    return x[rank::world], y[rank::world]


def fit(steps=5):
    torch.manual_seed(6)
    model = DDP(nn.Sequential(nn.Linear(5, 10), nn.Tanh(), nn.Linear(10, 1)))
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)
    x, y = data(dist.get_rank(), dist.get_world_size())

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        dist.all_reduce(shared := loss.detach().clone())
        return shared / dist.get_world_size()

    for _ in range(steps):
        loss = optimizer.step(closure)
    return loss.item()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    loss = fit()
    if dist.get_rank() == 0:
        print("loss", loss)
    dist.destroy_process_group()
