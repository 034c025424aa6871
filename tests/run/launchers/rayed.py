"""python rayed.py WHAT: the same training, by Ray Train, whose daemon starts the workers."""

import os
import sys
import time
from pathlib import Path

import ray
import torch
import torch.distributed as dist
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model
from torch import nn


def train(config):
    what, folder = config["what"], Path(config["folder"])
    rank = dist.get_rank()
    model = prepare_model(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        if step == 1 and what == "hang" and rank == 0:
            dist.barrier()  # the barrier
        if step == 1 and what == "crash" and rank == 1:
            raise ValueError("a bad sample")  # the crash
        if step == 1 and what == "long":
            (folder / f"trains-{rank}").touch()
            while True:
                time.sleep(0.05)
        if step == 1 and what == "idle":
            (folder / f"idles-{rank}").touch()
            while not (folder / "enough").exists():
                time.sleep(0.05)
            (folder / f"ended-{rank}").touch()
    (folder / f"trained-{rank}").touch()


def main():
    folder = Path.cwd()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    trainer = TorchTrainer(
        train,
        train_loop_config={"what": sys.argv[1], "folder": str(folder)},
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(name="run", storage_path=str(folder / "results")),
    )
    trainer.fit()
    for rank in (0, 1):
        assert (folder / f"trained-{rank}").exists()
        os.write(1, f"rank {rank} trained\n".encode())


if __name__ == "__main__":
    main()
