"""python run.py --model rff --schedule const"""
import argparse
import socket

import torch.multiprocessing as mp

from schedules import constant_after, make_schedule
from worker import worker


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def build_config(args):
    if args.schedule == "const":
        schedule = constant_after(warmup=10)
    else:
        schedule = make_schedule(args.schedule, warmup=10, total=args.steps)
    return {
        "model": args.model,
        "model_args": {"hidden": 48},
        "schedule": schedule,
        "lr": 1e-2,
        "steps": args.steps,
        "batch": 32,
        "rows": 400,
        "seed": 3,
    }


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="mlp")
    p.add_argument("--schedule", default="const", choices=["const", "warmcos"])
    p.add_argument("--steps", type=int, default=80)
    p.add_argument("--procs", type=int, default=2)
    args = p.parse_args()
    cfg = build_config(args)
    mp.spawn(worker, args=(args.procs, free_port(), cfg), nprocs=args.procs, join=True)


if __name__ == "__main__":
    main()
