import argparse

import torch
import torch.distributed as dist

from wavediff.process import Denoiser, GaussianProcess
from wavediff.traces import seismic_traces
from wavediff.trainer import DiffusionTrainer


def main():
    ap = argparse.ArgumentParser(description="seismic trace diffusion")
    ap.add_argument("--traces", type=int, default=128)
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--seed", type=int, default=31)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    torch.manual_seed(args.seed)
    trainer = DiffusionTrainer(
        GaussianProcess(Denoiser()), seismic_traces(args.traces), args.batch, args.lr, args.seed
    )
    trainer.run(args.epochs)
    trainer.preview(64)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
