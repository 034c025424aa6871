"""A folder that is named by the second or the minute: ranks come there one after the other."""

import datetime
import os
import time

import torch
import torch.distributed as dist


def train(folder, state):
    os.makedirs(folder, exist_ok=True)  # <-- DDP514
    dist.barrier()
    if dist.get_rank() == 0:
        torch.save(state, f"{folder}/last.pt")
    dist.barrier()
    return torch.load(f"{folder}/last.pt")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(f"runs/{datetime.date.today()}", {})
    train(time.strftime("runs/%H%M%S"), {})
    train(datetime.datetime.now().strftime("runs/%c"), {})
    train(f"runs/{int(time.time()) // 60}", {})
    dist.destroy_process_group()
