"""A folder that is named by the hour or the day: ranks that start together nearly always agree."""

import datetime
import os
import time

import torch
import torch.distributed as dist


def train(folder, state):
    os.makedirs(folder, exist_ok=True)
    dist.barrier()
    if dist.get_rank() == 0:
        torch.save(state, f"{folder}/last.pt")
    dist.barrier()
    return torch.load(f"{folder}/last.pt")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(f"runs/{datetime.date.today()}", {})
    train(time.strftime("runs/%Y%m%d"), {})
    train(datetime.datetime.now().strftime("runs/%Y-%m-%d"), {})
    train(f"runs/{int(time.time()) // 3600}", {})
    dist.destroy_process_group()
