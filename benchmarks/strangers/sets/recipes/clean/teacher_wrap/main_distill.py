import argparse

import torch
import torch.distributed as dist

from distill import builder, loop


def parser():
    p = argparse.ArgumentParser()
    p.add_argument("--tau", type=float, default=2.0)
    p.add_argument("--steps", type=int, default=25)
    p.add_argument("--lr", type=float, default=5e-3)
    return p


if __name__ == "__main__":
    args = parser().parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    student, teacher = builder.build_pair(args)
    loop.run(student, teacher, args)
    dist.barrier()
    dist.destroy_process_group()
