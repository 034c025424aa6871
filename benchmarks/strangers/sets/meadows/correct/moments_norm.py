"""EEG decoder with normalisation over the batches of all processes, written by hand."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class AllSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = x.clone()
        dist.all_reduce(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        out = grad.clone()
        dist.all_reduce(out)
        return out


class WorldNorm(nn.Module):
    """Batch norm over channels whose moments come from every process."""

    def __init__(self, channels, momentum=0.1, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("var", torch.ones(channels))
        self.momentum, self.eps = momentum, eps

    def forward(self, x):
        if self.training:
            count = x.new_full((1,), x.shape[0] * x.shape[2])
            moments = AllSum.apply(torch.cat([x.sum((0, 2)), x.pow(2).sum((0, 2)), count]))
            c = x.shape[1]
            mean = moments[:c] / moments[-1]
            var = moments[c : 2 * c] / moments[-1] - mean**2
            with torch.no_grad():
                self.mean.lerp_(mean, self.momentum)
                self.var.lerp_(var, self.momentum)
        else:
            mean, var = self.mean, self.var
        scaled = (x - mean[None, :, None]) * (var[None, :, None] + self.eps).rsqrt()
        return scaled * self.weight[None, :, None] + self.bias[None, :, None]


class Decoder(nn.Module):
    def __init__(self, electrodes=8, classes=3):
        super().__init__()
        self.conv = nn.Conv1d(electrodes, 16, 7, padding=3)
        self.norm = WorldNorm(16)
        self.out = nn.Linear(16, classes)

    def forward(self, x):
        return self.out(torch.relu(self.norm(self.conv(x))).mean(-1))


def trials(subject, n=160):
    g = torch.Generator().manual_seed(subject)
    y = torch.randint(0, 3, (n,), generator=g)
    t = torch.arange(64).float()
    wave = torch.sin(t * (0.2 + 0.3 * y[:, None].float()))
    x = torch.randn(n, 8, 64, generator=g) * (1 + subject)
    x[:, :3] += (1 + subject) * wave[:, None]
    return x, y


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    x, y = trials(subject=rank)
    model = DDP(Decoder(), broadcast_buffers=False)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(4):
        for lo in range(0, len(y), 20):
            loss = nn.functional.cross_entropy(model(x[lo : lo + 20]), y[lo : lo + 20])
            opt.zero_grad()
            loss.backward()
            opt.step()
        shown = loss.detach().clone()
        dist.all_reduce(shown, op=dist.ReduceOp.SUM)
        if rank == 0:
            print(f"epoch {epoch} loss {shown.item() / dist.get_world_size():.3f}", flush=True)
    model.eval()
    with torch.no_grad():
        hits = (model.module(x).argmax(1) == y).sum()
    dist.all_reduce(hits)
    if rank == 0:
        print("train accuracy", hits.item() / (len(y) * dist.get_world_size()))


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
