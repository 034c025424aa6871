import numpy as np
import torch
import torch.distributed as dist


def moment_loss(fake, real):
    return (fake.mean(0) - real.mean(0)).pow(2).sum() + (fake.std(0) - real.std(0)).pow(2).sum()


def train(model, cfg):
    opt = torch.optim.Adam(model.parameters(), **cfg["optim"])
    for _ in range(cfg["iters"]):
        real = torch.from_numpy(np.random.normal(1.0, 0.5, (64, 2)).astype("float32"))
        loss = moment_loss(model(torch.randn(64, model.module.z)), real)
        opt.zero_grad()
        loss.backward()
        opt.step()
    s = sum(p.detach().abs().sum() for p in model.parameters())
    print(f"rank {dist.get_rank()} loss {loss.item():.4f} |w| {s.item():.5f}", flush=True)
    dist.barrier()
