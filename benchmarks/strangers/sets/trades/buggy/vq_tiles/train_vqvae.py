import argparse

import torch
from torch import nn
from torch import distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler

import distributed as dist_fn
from vqvae import VQVAE


class Tiles(Dataset):
    """Bathroom tiles: stripes, checkers, dots; each in a few phases."""

    def __init__(self, n, size=12, seed=0):
        g = torch.Generator().manual_seed(seed)
        yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        self.x = []
        for i in range(n):
            ph = torch.randint(0, 4, (1,), generator=g).item()
            kind = i % 3
            img = [(xx + ph) % 4 < 2, ((xx + ph) // 3 + yy // 3) % 2 == 0, ((xx + ph) % 4 == 0) & (yy % 4 == 0)][kind]
            self.x.append(img.float()[None] + 0.05 * torch.randn(1, size, size, generator=g))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i]


def train(epoch, loader, model, optimizer, latent_weight):
    criterion = nn.MSELoss()
    mse_sum, diff_sum = 0.0, 0.0
    for img in loader:
        model.zero_grad()
        out, diff = model(img)
        recon = criterion(out, img)
        loss = recon + latent_weight * diff
        loss.backward()
        optimizer.step()
        mse_sum += recon.item() / len(loader)
        diff_sum += diff.item() / len(loader)
    mse, diff = dist_fn.reduce_mean([mse_sum, diff_sum])
    if dist_fn.is_primary():
        used = (model.module.quantize.cluster_size > 0.05).sum().item()
        print(f"epoch: {epoch}; mse: {mse:.4f}; latent: {diff:.4f}; codes in use: {used}", flush=True)


def main(args):
    dist.init_process_group("gloo")
    torch.manual_seed(args.seed)
    dataset = Tiles(240, seed=args.seed)
    sampler = DistributedSampler(dataset, shuffle=True, drop_last=True)
    loader = DataLoader(dataset, batch_size=12, sampler=sampler)
    model = nn.parallel.DistributedDataParallel(VQVAE())
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epoch):
        sampler.set_epoch(epoch)
        train(epoch, loader, model, optimizer, args.latent_weight)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epoch", type=int, default=4)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--latent_weight", type=float, default=0.25)
    parser.add_argument("--seed", type=int, default=19)
    main(parser.parse_args())
