"""Image-caption contrastive training: the negatives come from all ranks, the gradient from the own rows."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


def share(x):
    """All rows of all ranks; only the rows of this rank carry a graph."""
    with torch.no_grad():
        rows = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(rows, x)
    rows[dist.get_rank()] = x
    return torch.cat(rows)


class DualEncoder(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.image = nn.Sequential(nn.Linear(30, 48), nn.ReLU(), nn.Linear(48, d))
        self.text = nn.EmbeddingBag(50, d)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, image, text):
        return F.normalize(self.image(image), dim=1), F.normalize(self.text(text), dim=1), self.scale.exp()


class GlobalInfoNCE:
    """The mean over the global batch, written so that DDP's averaging gives its exact gradient."""

    def __init__(self, world):
        self.world = world

    def __call__(self, img, txt, scale):
        img, txt = share(img), share(txt)
        logits = scale.detach() * img @ txt.T
        gold = torch.arange(len(logits))
        loss = 0.5 * (F.cross_entropy(logits, gold) + F.cross_entropy(logits.T, gold))
        own = (scale - scale.detach()) * (logits / scale.detach()).detach()
        tune = 0.5 * (F.cross_entropy(logits.detach() + own, gold) + F.cross_entropy((logits.detach() + own).T, gold))
        return loss * self.world + tune - tune.detach(), loss.detach()


class Captions:
    def __init__(self, rank):
        self.g = torch.Generator().manual_seed(20 + rank)
        self.proto = torch.randn(50, 30, generator=torch.Generator().manual_seed(0))

    def batch(self, n=16):
        words = torch.randint(0, 50, (n, 4), generator=self.g)
        image = self.proto[words].mean(1) + 0.2 * torch.randn(n, 30, generator=self.g)
        return image, words


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    model = DistributedDataParallel(DualEncoder())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    criterion, data = GlobalInfoNCE(world), Captions(rank)
    for step in range(1, 31):
        loss, shown = criterion(*model(*data.batch()))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {shown.item():.4f} temperature {1 / model.module.scale.exp().item():.3f}", flush=True)
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
