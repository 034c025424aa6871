"""Adapter training for a toy portrait denoiser with accelerate."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset


class LowRank(nn.Module):
    def __init__(self, base, rank, scale):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)
        self.scale = scale

    def forward(self, x):
        return self.base(x) + self.scale * self.up(self.down(x))


class Denoiser(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.inp = nn.Linear(dim + 1, 96)
        self.mid = nn.Linear(96, 96)
        self.out = nn.Linear(96, dim)

    def add_adapters(self, rank, scale=1.0):
        for name in ("inp", "mid", "out"):
            setattr(self, name, LowRank(getattr(self, name), rank, scale))
        return [p for p in self.parameters() if p.requires_grad]

    def adapter_state(self):
        return {k: v for k, v in self.state_dict().items() if ".down." in k or ".up." in k}

    def forward(self, x, t):
        h = torch.relu(self.inp(torch.cat([x, t], 1)))
        return self.out(torch.relu(self.mid(h)))


def portraits(n, dim=64):
    g = torch.Generator().manual_seed(21)
    basis = torch.randn(5, dim, generator=g)
    return TensorDataset(torch.randn(n, 5, generator=g) @ basis / 2)


def main(args):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=args.accum)
    set_seed(args.seed)
    unet = Denoiser()
    params = unet.add_adapters(args.rank)
    optimizer = torch.optim.AdamW(params, lr=args.lr)
    loader = DataLoader(portraits(args.images), batch_size=args.batch, shuffle=True)
    unet, optimizer, loader = accelerator.prepare(unet, optimizer, loader)
    set_seed(args.seed + accelerator.process_index)

    for epoch in range(args.epochs):
        unet.train()
        for (clean,) in loader:
            with accelerator.accumulate(unet):
                t = torch.rand(len(clean), 1)
                noise = torch.randn_like(clean)
                pred = unet((1 - t) * clean + t * noise, t)
                loss = F.mse_loss(pred, noise - clean)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(params, 1.0)
                optimizer.step()
                optimizer.zero_grad()
        mean = accelerator.gather(loss.detach().reshape(1)).mean().item()
        accelerator.print(f"epoch {epoch} loss {mean:.4f}", flush=True)
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        torch.save(accelerator.unwrap_model(unet).adapter_state(), "portrait_adapter.pt")
    accelerator.end_training()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--rank", type=int, default=4)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--images", type=int, default=512)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--accum", type=int, default=2)
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--seed", type=int, default=42)
    main(p.parse_args())
