import socket

import torch.distributed as dist
import torch.multiprocessing as mp

from .session import Session


def _worker(rank, world, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    Session(rank, world).train()
    dist.destroy_process_group()


def spawn(world):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(_worker, args=(world, port), nprocs=world)
