# # Self-supervised features from two views
# (exported from a notebook, one `# %%` per cell)

# %%
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

dist.init_process_group("gloo")
RANK, WORLD = dist.get_rank(), dist.get_world_size()
TEMPERATURE, BATCH, EPOCHS = 0.2, 16, 4


# %%
class Blobs(Dataset):
    def __init__(self, n=256):
        g = torch.Generator().manual_seed(1)
        self.x = torch.randn(6, 20, generator=g)[torch.randint(6, (n,), generator=g)] + 0.6 * torch.randn(n, 20, generator=g)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i]


class Augment:
    """Feature dropout and jitter from an own stream on every rank."""

    def __init__(self, seed):
        self.gen = torch.Generator().manual_seed(seed)

    def __call__(self, x):
        keep = (torch.rand(x.shape, generator=self.gen) > 0.2).float()
        return x * keep + 0.2 * torch.randn(x.shape, generator=self.gen)


# %%
class Projector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU())
        self.project = nn.Linear(32, 16)

    def forward(self, v1, v2):
        z = F.normalize(self.project(self.backbone(torch.cat([v1, v2]))), dim=1)
        return z.chunk(2)


def gather_all(emb):
    parts = [torch.zeros_like(emb) for _ in range(WORLD)]
    dist.all_gather(parts, emb.contiguous())
    return torch.cat(parts)


def nt_xent(z1, z2):
    b = z1.shape[0]
    a1, a2 = gather_all(z1), gather_all(z2)
    keys = torch.cat([a1, a2])
    n = a1.shape[0]
    both = torch.arange(n)
    logits = torch.cat([a1, a2]) @ keys.t() / TEMPERATURE
    logits = logits - 1e9 * torch.eye(2 * n)
    target = torch.cat([both + n, both])
    return F.cross_entropy(logits, target), b


# %%
torch.manual_seed(0)
model = DDP(Projector())
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
data = Blobs()
sampler = DistributedSampler(data, drop_last=True)
loader = DataLoader(data, batch_size=BATCH, sampler=sampler, drop_last=True)
aug = Augment(seed=77 + RANK)

# %%
for epoch in range(EPOCHS):
    sampler.set_epoch(epoch)
    log = torch.zeros(2)
    for x in loader:
        z1, z2 = model(aug(x), aug(x))
        loss, _ = nt_xent(z1, z2)
        uniform = torch.pdist(z1).pow(2).mul(-2).exp().mean().log()
        total = loss + 0.05 * uniform
        opt.zero_grad()
        (WORLD * total).backward()
        opt.step()
        log += torch.tensor([loss.item(), 1.0])
    dist.all_reduce(log)
    if RANK == 0:
        print(f"epoch {epoch}: contrastive loss {log[0] / log[1]:.4f}", flush=True)

# %%
del model, opt
dist.destroy_process_group()
