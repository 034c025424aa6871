"""Keypoint heat map regression for mice, started from the annotation GUI. The GUI writes a control file to stop us."""
import argparse
import os
import tempfile

import torch
import torch.distributed as dist

from callbacks import ControlFile, History, LossPrinter
from data import make_loader
from net import HeatmapNet
from trainer import Trainer


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--control-dir", default=os.path.join(tempfile.gettempdir(), "pose_ctl"))
    p.add_argument("--gui-stops-after", type=int, default=9, help="demo: the GUI asks to stop at this step")
    return p.parse_args()


def main():
    args = parse()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(3)
    loader, sampler = make_loader(96, args.batch_size, rank, dist.get_world_size())
    callbacks = [History(), ControlFile(args.control_dir, args.gui_stops_after)]
    if rank == 0:
        callbacks.append(LossPrinter(every=4))
    trainer = Trainer(HeatmapNet(), loader, sampler, args, callbacks)
    trainer.fit()
    if rank == 0:
        print("finished at step", trainer.global_step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
