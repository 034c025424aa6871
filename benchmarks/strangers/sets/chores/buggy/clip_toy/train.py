from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from losses import PairLoss


@dataclass
class Config:
    epochs: int = 3
    batch_size: int = 12
    pairs: int = 240
    dim: int = 24
    lr: float = 2e-3
    seed: int = 0


class TwoTower(nn.Module):
    def __init__(self, img_dim, txt_dim, dim):
        super().__init__()
        self.img = nn.Sequential(nn.Linear(img_dim, 64), nn.ReLU(), nn.Linear(64, dim))
        self.txt = nn.Sequential(nn.Linear(txt_dim, 64), nn.ReLU(), nn.Linear(64, dim))
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, image, text):
        return self.img(image), self.txt(text), self.log_scale.exp()


def make_pairs(cfg):
    g = torch.Generator().manual_seed(cfg.seed)
    latent = torch.randn(cfg.pairs, 8, generator=g)
    image = latent @ torch.randn(8, 20, generator=g) + 0.1 * torch.randn(cfg.pairs, 20, generator=g)
    text = latent @ torch.randn(8, 16, generator=g) + 0.1 * torch.randn(cfg.pairs, 16, generator=g)
    return TensorDataset(image, text)


@torch.no_grad()
def recall_at_1(net, dataset):
    image, text = dataset.tensors
    img, txt, _ = net(image, text)
    sims = nn.functional.normalize(img, dim=-1) @ nn.functional.normalize(txt, dim=-1).t()
    return (sims.argmax(1) == torch.arange(len(dataset))).float().mean().item()


def main():
    cfg = Config()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(cfg.seed)
    dataset = make_pairs(cfg)
    sampler = DistributedSampler(dataset, shuffle=True, drop_last=True)
    loader = DataLoader(dataset, batch_size=cfg.batch_size, sampler=sampler, drop_last=True)
    model = DDP(TwoTower(20, 16, cfg.dim))
    criterion = PairLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)

    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        for image, text in loader:
            loss = criterion(*model(image, text))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} R@1 {recall_at_1(model.module, dataset):.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
