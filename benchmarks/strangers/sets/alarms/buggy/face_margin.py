"""Face recognition toy: backbone + margin head; the quality branch joins after a warm-up."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class CFG:
    embedding = 16
    classes = 10
    batch = 24
    margin = 0.2
    scale = 16.0
    warmup_steps = 6
    total_steps = 20
    lr = 0.05


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(32, 48), nn.PReLU(48), nn.Linear(48, CFG.embedding))
        self.quality = nn.Sequential(nn.Linear(CFG.embedding, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, x, use_quality):
        e = self.features(x)
        w = self.quality(e).sigmoid() if use_quality else torch.ones(x.shape[0], 1)
        return F.normalize(e), w.squeeze(1)


class MarginHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(CFG.classes, CFG.embedding) * 0.1)

    def forward(self, emb, label):
        cos = emb @ F.normalize(self.weight).t()
        cos = cos - CFG.margin * F.one_hot(label, CFG.classes)
        return F.cross_entropy(CFG.scale * cos, label, reduction="none")


def identities(rank):
    centers = torch.randn(CFG.classes, 32, generator=torch.Generator().manual_seed(9))
    g = torch.Generator().manual_seed(rank)
    while True:
        y = torch.randint(0, CFG.classes, (CFG.batch,), generator=g)
        yield centers[y] + 0.5 * torch.randn(CFG.batch, 32, generator=g), y


def main():
    dist.init_process_group(backend="gloo")
    rank = dist.get_rank()
    torch.manual_seed(2048)
    backbone = DistributedDataParallel(Backbone(), broadcast_buffers=False, static_graph=True)
    head = DistributedDataParallel(MarginHead())
    opt = torch.optim.SGD([{"params": backbone.parameters()}, {"params": head.parameters()}],
                          lr=CFG.lr, momentum=0.9, weight_decay=5e-4)
    data = identities(rank)
    for step in range(CFG.total_steps):
        x, y = next(data)
        emb, weight = backbone(x, use_quality=step >= CFG.warmup_steps)
        loss = (weight * head(emb, y)).mean() - 0.1 * weight.log().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 5 == 0:
            print(f"Global step {step} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
