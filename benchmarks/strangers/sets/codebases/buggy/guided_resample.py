"""Denoising of noisy rings with importance-sampled time steps (guided-diffusion layout)."""
import argparse

import torch as th

from guided_resample_lib import dist_util
from guided_resample_lib.diffusion import GaussianDiffusion, Rings, UNetModel
from guided_resample_lib.resample import create_named_schedule_sampler
from guided_resample_lib.train_util import TrainLoop


def load_data(batch_size, num_shards, shard):
    data = Rings(960, seed=0)
    local = th.utils.data.Subset(data, range(len(data))[shard::num_shards])
    loader = th.utils.data.DataLoader(local, batch_size=batch_size, shuffle=True, drop_last=True,
                                      generator=th.Generator().manual_seed(shard))
    while True:
        yield from loader


def create_argparser():
    defaults = dict(schedule_sampler="loss-second-moment", lr=2e-3, steps=120, batch_size=32,
                    microbatch=16, ema_rate=0.99, log_interval=40, diffusion_steps=24)
    parser = argparse.ArgumentParser()
    for k, v in defaults.items():
        parser.add_argument(f"--{k}", default=v, type=type(v))
    return parser


def main():
    args = create_argparser().parse_args()
    dist_util.setup_dist()
    rank, world = dist_util.rank_and_size()
    th.manual_seed(10 + rank)
    model, diffusion = UNetModel(args.diffusion_steps), GaussianDiffusion(args.diffusion_steps)
    TrainLoop(
        model=model, diffusion=diffusion, data=load_data(args.batch_size, world, rank),
        batch_size=args.batch_size, microbatch=args.microbatch, lr=args.lr, ema_rate=args.ema_rate,
        log_interval=args.log_interval, steps=args.steps,
        schedule_sampler=create_named_schedule_sampler(args.schedule_sampler, diffusion),
    ).run_loop()
    dist_util.cleanup()


if __name__ == "__main__":
    main()
