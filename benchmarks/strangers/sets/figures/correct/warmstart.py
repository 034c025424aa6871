"""Pretrain on one task, then warm start a second model from the checkpoint with a new head."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CKPT = "warmstart_pretrain.pt"


class Model(nn.Module):
    def __init__(self, n_out):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU())
        self.head = nn.Linear(32, n_out)

    def forward(self, x):
        return self.head(self.trunk(x))


def task(n, classes, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (n,), generator=g)
    return TensorDataset(torch.randn(classes, 24, generator=g)[y] + torch.randn(n, 24, generator=g), y)


def fit(model, data, epochs, lr, tag):
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 16, sampler=sampler)
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if dist.get_rank() == 0:
            print(f"{tag} epoch {epoch} loss {loss.item():.4f}")


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(10 + dist.get_rank())
    first = DDP(Model(8))
    fit(first, task(384, 8, 1), 2, 3e-3, "pretrain")
    if dist.get_rank() == 0:
        torch.save({k: v for k, v in first.module.state_dict().items() if k.startswith("trunk.")}, CKPT)
    dist.barrier()
    second = Model(3)
    info = second.load_state_dict(torch.load(CKPT, map_location="cpu"), strict=False)
    assert not info.unexpected_keys and all(k.startswith("head.") for k in info.missing_keys), info
    second = DDP(second)
    fit(second, task(320, 3, 2), 2, 1e-3, "finetune")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
