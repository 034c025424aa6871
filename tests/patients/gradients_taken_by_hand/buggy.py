# style: meta-learning flavoured loop, functional gradients
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh())
        self.out = nn.Linear(20, 1)

    def forward(self, x):
        return self.out(self.body(x))


class Sinusoids:
    """Tasks of sine waves with random phase and amplitude; every rank draws its own."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self, points):
        amplitude, phase = torch.rand(2, generator=self.generator)
        x = torch.rand(points, 1, generator=self.generator) * 10 - 5
        return x, (0.1 + 4.9 * amplitude) * torch.sin(x + 3.14 * phase)


def penalty(model, x):
    x = x.clone().requires_grad_(True)
    slope = torch.autograd.grad(model.module(x).sum(), x)[0]
    return slope.pow(2).mean().detach()


def update(model, optimizer, x, y):
    loss = nn.functional.mse_loss(model(x), y)
    params = [p for p in model.parameters() if p.requires_grad]
    grads = torch.autograd.grad(loss, params)  # <-- DDP313
    for p, g in zip(params, grads):
        p.grad = g
    optimizer.step()
    return loss.item()


def main(steps=9):
    torch.manual_seed(0)
    model = DDP(Regressor())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    tasks = Sinusoids(seed=dist.get_rank())
    for step in range(steps):
        x, y = tasks.draw(16)
        loss = update(model, optimizer, x, y)
        if step % 4 == 0 and dist.get_rank() == 0:
            print(f"step {step} loss {loss:.3f} slope {penalty(model, x):.3f}")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
