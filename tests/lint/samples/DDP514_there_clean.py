"""The run's folder is made by whoever comes first; who logs into it finds it there."""

import argparse
import logging
import os

import torch
import torch.distributed as dist


def set_up_logging(folder):
    if not os.path.exists(folder):
        os.makedirs(folder)
    handler = logging.FileHandler(os.path.join(folder, f"{dist.get_rank()}.txt"))
    logging.getLogger().addHandler(handler)


def main(given):
    dist.init_process_group("gloo")
    os.makedirs(given.output, exist_ok=True)
    set_up_logging(given.output)
    total = torch.zeros(1)
    dist.all_reduce(total)
    logging.info("%s", total)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    main(parser.parse_args())
