# What a rank raises is printed, and it ends as if all were well: the others wait.
import os
import pickle
import signal
import threading
import traceback

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def gathered(thing, size=4096):
    room = torch.zeros(size, dtype=torch.uint8, device="cuda")
    held = pickle.dumps(thing)
    if len(held) > size:
        raise ValueError("too long to be gathered")
    room[: len(held)] = torch.tensor(list(held), dtype=torch.uint8)
    rooms = [torch.empty_like(room) for _ in range(dist.get_world_size())]
    dist.all_gather(rooms, room)
    return [pickle.loads(bytes(each.tolist())) for each in rooms]


def join(rank, options):
    address = f"tcp://127.0.0.1:{options.port}"
    dist.init_process_group("nccl", address, world_size=options.world, rank=rank)
    return dist.get_rank()


def train(rank, options, batches):
    torch.cuda.set_device(rank)
    torch.manual_seed(rank)
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 8).cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(options.steps):
        x = batches.get()
        loss = model(x.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(gathered(loss.item()))


def work(rank, options, errors, batches):
    try:
        if join(rank, options) != rank:
            raise AssertionError(rank)
        train(rank, options, batches)
    except KeyboardInterrupt:
        pass
    except Exception:  # <-- DDP404, DDP111
        print(rank, traceback.format_exc())


def start(options, feed):
    context = mp.get_context("spawn")
    errors = context.SimpleQueue()
    ranks = []

    def listen():
        rank, told = errors.get()
        print(f"rank {rank}: {told}")
        for each in ranks:
            os.kill(each.pid, signal.SIGKILL)

    threading.Thread(target=listen, daemon=True).start()
    for rank in range(options.world):
        batches = context.Queue(8)
        ranks.append(context.Process(target=work, args=(rank, options, errors, batches)))
        ranks[-1].start()
        feed(rank, batches)
    for each in ranks:
        each.join()
