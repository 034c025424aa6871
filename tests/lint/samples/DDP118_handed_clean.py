import argparse
import os
import socket

import torch.distributed as dist
import torch.multiprocessing as mp


class Settings:
    epochs = 3


def a_free_port():
    with socket.socket() as some:
        some.bind(("", 0))
        return str(some.getsockname()[1])


def of_an_object(index, settings):
    """What it holds was picked once, by who starts the ranks."""
    os.environ["MASTER_PORT"] = settings.port
    dist.init_process_group("gloo", rank=index, world_size=2)


def of_options(index, options):
    os.environ["MASTER_PORT"] = options.port
    dist.init_process_group("gloo", rank=index, world_size=2)


def of_a_table(index, table):
    os.environ["MASTER_PORT"] = table["where"]["port"]
    dist.init_process_group("gloo", rank=index, world_size=2)


if __name__ == "__main__":
    settings = Settings()
    settings.port = a_free_port()
    options = argparse.ArgumentParser().parse_args()
    options.port = a_free_port()
    table = {"where": {"port": a_free_port()}}
    mp.spawn(of_an_object, args=(settings,), nprocs=2)
    mp.spawn(of_options, args=(options,), nprocs=2)
    mp.spawn(of_a_table, args=(table,), nprocs=2)
