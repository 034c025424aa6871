"""Hands blocks from host to host, pair by pair; which host this is, the command line says."""

import argparse

import torch
import torch.distributed as dist


def exchange(block, host, hosts, number, per_host):
    for source in range(hosts):
        for target in range(hosts):
            if source == target:
                continue
            if source == host:
                dist.send(block, target * per_host + number)
            elif target == host:
                dist.recv(block, source * per_host + number)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", type=int)
    parser.add_argument("--hosts", type=int)
    parser.add_argument("--number", type=int)
    parser.add_argument("--per-host", type=int)
    options = parser.parse_args()
    dist.init_process_group(
        "gloo",
        init_method="tcp://10.0.0.4:29500",  # <- DDP104
        world_size=options.hosts * options.per_host,
        rank=options.number + options.per_host * options.host,
    )
    block = torch.zeros(1024, 128)
    exchange(block, options.host, options.hosts, options.number, options.per_host)


if __name__ == "__main__":
    main()
