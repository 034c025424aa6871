import torch
import torch.distributed as dist
import torch.nn as nn
from torch import autograd
from torch.utils.data import DataLoader, TensorDataset


class Norm(autograd.Function):
    @classmethod
    def forward(cls, ctx, x, training=True):
        ctx.training = training
        ctx.world_size = dist.get_world_size() if dist.is_initialized() else 1
        if ctx.training:
            mean = x.mean()
            if ctx.world_size > 1:
                dist.all_reduce(mean)
            x = x - mean
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, dz):
        return dz, None


class SyncNorm(nn.Module):
    def forward(self, x):
        return Norm.apply(x, self.training)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.norm = SyncNorm()

    def forward(self, x):
        return self.norm(self.first(x))


class Evaluator:
    def __init__(self, net, loader):
        self.net, self.loader = net, loader

    def score(self, x):
        total = 0.0
        for _ in range(int(x.max())):  # <- DDP418
            with torch.no_grad():
                total += self.net(x).sum().item()
        return total

    def evaluate(self):
        return sum(self.score(x) for x, _ in self.loader)


def evaluate():
    net = Net()
    net.load_state_dict(torch.load("model.pth", map_location="cpu"))
    data = TensorDataset(torch.randn(64, 3), torch.randn(64, 1))
    loader = DataLoader(data, batch_size=4, shuffle=False)
    print(Evaluator(net, loader).evaluate())


if __name__ == "__main__":
    evaluate()
