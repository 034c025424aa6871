"""A launcher has named the port, or else this is a process of its own."""

import os
import socket

import torch.distributed as dist


def free_port():
    with socket.socket() as taken:
        taken.bind(("", 0))
        return taken.getsockname()[1]


class Launch:
    def __init__(self):
        self.rank, self.world_size = 0, 1
        if "RANK" in os.environ:
            self._by_launcher()
        else:
            self._alone()

    def _by_launcher(self):
        self.port = os.environ["MASTER_PORT"]
        self.rank = int(os.environ["RANK"])
        self.world_size = int(os.environ["WORLD_SIZE"])

    def _alone(self):
        self.port = free_port()

    def export(self):
        wanted = {
            "RANK": str(self.rank),
            "WORLD_SIZE": str(self.world_size),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(self.port),
        }
        os.environ.update(wanted)


def sample(rank, port):
    os.environ["RANK"] = str(rank)
    os.environ["WORLD_SIZE"] = "1"
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo")


def train():
    Launch().export()
    dist.init_process_group("gloo")
    dist.barrier()


if __name__ == "__main__":
    if os.environ.get("SAMPLE"):
        sample(0, free_port())
    else:
        train()
