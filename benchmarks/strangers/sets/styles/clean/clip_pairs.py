"""Image-text contrastive training on synthetic pairs (open_clip-like split into modules)."""
import argparse
import math

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from clip_pairs_lib.data import Pairs
from clip_pairs_lib.loss import create_loss
from clip_pairs_lib.model import TwoTower


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--warmup", type=int, default=8)
    return p.parse_args()


@torch.no_grad()
def retrieval(net, data):
    image, text = zip(*(data[i] for i in range(len(data))))
    a, b, _ = net(torch.stack(image), torch.stack(text))
    return ((a @ b.t()).argmax(1) == torch.arange(len(a))).float().mean().item()


def main():
    args = parse()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    data, test = Pairs(256, seed=1), Pairs(64, seed=2)
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, args.batch_size, sampler=sampler, drop_last=True)
    net = TwoTower()
    model = DDP(net)
    loss_fn = create_loss(rank, world)
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=args.lr)
    total, step = args.epochs * len(loader), 0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for image, text in loader:
            scale = min(1.0, (step + 1) / args.warmup) * 0.5 * (1 + math.cos(math.pi * step / total))
            for group in opt.param_groups:
                group["lr"] = args.lr * scale
            loss = loss_fn(*model(image, text))
            opt.zero_grad()
            loss.backward()
            opt.step()
            with torch.no_grad():
                net.logit_scale.clamp_(0, math.log(100))
            step += 1
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} R@1 {retrieval(net, test):.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
