"""Image-text contrastive pretraining with the negatives of all processes."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.rows = x.size(0)
        out = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(out, x.contiguous())
        return torch.cat(out)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous()
        dist.all_reduce(grad)
        r = dist.get_rank() * ctx.rows
        return grad[r:r + ctx.rows]


gather_rows = GatherRows.apply


class DualEncoder(nn.Module):
    def __init__(self, d=24):
        super().__init__()
        self.img = nn.Sequential(nn.Linear(40, 48), nn.ReLU(), nn.Linear(48, d))
        self.txt = nn.Sequential(nn.EmbeddingBag(60, 32), nn.Linear(32, d))
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, image, text):
        return F.normalize(self.img(image), dim=-1), F.normalize(self.txt(text), dim=-1), self.scale.exp()


class ClipLoss(nn.Module):
    def forward(self, zi, zt, scale):
        all_i, all_t = gather_rows(zi), gather_rows(zt)
        n = len(zi)
        target = torch.arange(n) + n * dist.get_rank()
        li = scale * zi @ all_t.T
        lt = scale * zt @ all_i.T
        return (F.cross_entropy(li, target) + F.cross_entropy(lt, target)) / 2


def pairs(gen, n):
    c = torch.randint(60, (n, 5), generator=gen)
    img = F.one_hot(c % 40, 40).sum(1).float() + 0.1 * torch.randn(n, 40, generator=gen)
    return img, c


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(5)
    model, criterion = DDP(DualEncoder()), ClipLoss()
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3)
    gen = torch.Generator().manual_seed(77 + rank)
    for step in range(30):
        loss = criterion(*model(*pairs(gen, 16)))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            shown = loss.detach().clone()
            dist.all_reduce(shown)
            if rank == 0:
                print("step", step, "loss %.3f" % (shown / dist.get_world_size()).item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
