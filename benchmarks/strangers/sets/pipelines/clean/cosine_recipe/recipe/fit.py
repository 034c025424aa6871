import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from .sched import warmup_cosine


def make_loader(cfg):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(cfg.samples, 7, generator=g)
    ds = TensorDataset(x, x.prod(1, keepdim=True).tanh())
    return DataLoader(ds, cfg.batch_size, sampler=DistributedSampler(ds), drop_last=True)


def fit(cfg):
    torch.manual_seed(0)
    loader = make_loader(cfg)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(7, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)))
    optimizer = cfg.make_optimizer(model.parameters())
    scheduler = warmup_cosine(optimizer, warmup=4, total=cfg.epochs * len(loader))
    for epoch in range(cfg.epochs):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.2e}", flush=True)
