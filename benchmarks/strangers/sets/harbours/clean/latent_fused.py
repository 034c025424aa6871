"""Fine-tunes a small latent denoiser. With fused_backward every weight is updated as soon as its
gradient exists and the gradient is dropped at once, which saves the memory of one copy of the model."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Denoiser(nn.Module):
    def __init__(self, dim=24, depth=3):
        super().__init__()
        self.time = nn.Linear(1, dim)
        self.blocks = nn.Sequential(*[Block(dim) for _ in range(depth)])
        self.out = nn.Linear(dim, dim)

    def forward(self, x, t):
        return self.out(self.blocks(x + self.time(t)))


def build_optimizer(net, args):
    if not args.fused_backward or dist.get_world_size() > 1:
        return torch.optim.AdamW(net.parameters(), lr=args.lr)
    per_weight = {p: torch.optim.AdamW([p], lr=args.lr) for p in net.parameters() if p.requires_grad}

    def update_and_drop(weight):
        per_weight[weight].step()
        per_weight[weight].zero_grad(set_to_none=True)

    for weight in per_weight:
        weight.register_post_accumulate_grad_hook(update_and_drop)
    return None


def latents(rank, n=256, dim=24):
    g = torch.Generator().manual_seed(100 + rank)
    basis = torch.randn(4, dim, generator=torch.Generator().manual_seed(1))
    return torch.randn(n, 4, generator=g) @ basis


def main(args):
    rank = dist.get_rank()
    torch.manual_seed(args.seed)
    net = Denoiser()
    model = DistributedDataParallel(net)
    optimizer = build_optimizer(net, args)
    data = latents(rank)
    noise_rng = torch.Generator().manual_seed(args.seed + rank)
    for step in range(args.max_train_steps):
        batch = data[torch.randint(0, len(data), (args.batch,), generator=noise_rng)]
        t = torch.rand(args.batch, 1, generator=noise_rng)
        eps = torch.randn(batch.shape, generator=noise_rng)
        loss = F.mse_loss(model((1 - t) * batch + t * eps, t), eps - batch)
        loss.backward()
        if optimizer is not None:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if rank == 0 and step % 10 == 0:
            print(f"step {step:3d} loss {loss.item():.4f}", flush=True)
    if rank == 0:
        torch.save(net.state_dict(), "denoiser.pt")
    dist.barrier()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--max_train_steps", type=int, default=40)
    parser.add_argument("--fused_backward", type=int, default=1)
    dist.init_process_group("gloo")
    main(parser.parse_args())
    dist.destroy_process_group()
