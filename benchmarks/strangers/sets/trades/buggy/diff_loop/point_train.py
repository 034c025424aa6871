"""
Train a diffusion model on points.

    torchrun --nproc_per_node=2 point_train.py --num_steps 80
"""
import argparse

import torch as th
import torch.distributed as dist

from gaussian_diffusion import GaussianDiffusion
from train_util import TrainLoop
from unet import EpsNet


def load_data(batch_size, seed):
    g = th.Generator().manual_seed(seed)
    while True:
        k = th.randint(0, 6, (batch_size,), generator=g)
        ang = k * 3.14159 / 3
        centre = th.stack([ang.cos(), ang.sin()], dim=1) * 1.5
        yield centre + 0.08 * th.randn(batch_size, 2, generator=g)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--microbatch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--ema_rate", type=float, default=0.98)
    parser.add_argument("--log_interval", type=int, default=20)
    parser.add_argument("--num_steps", type=int, default=120)
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    th.manual_seed(70 + rank)
    diffusion = GaussianDiffusion()
    loop = TrainLoop(
        model=EpsNet(),
        diffusion=diffusion,
        data=load_data(args.batch_size, seed=10 + rank),
        lr_anneal_steps=args.num_steps,
        **vars(args),
    )
    loop.run_loop()

    if rank == 0:
        pts = diffusion.ddim_sample_loop(loop.model, (256, 2))
        r = pts.norm(dim=1)
        print(f"sample radius {r.mean():.2f} +- {r.std():.2f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
