import argparse

import torch
import torch.distributed as dist


class Settings:
    def __init__(self, **given):
        for name, value in given.items():
            setattr(self, name, value)


def read():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--decay", type=float, default=0.0)
    parser.add_argument("--output", default="out")
    options = vars(parser.parse_args())
    options.update({"momentum": 0.9})
    return Settings(**options)


def main():
    settings = read()
    dist.init_process_group("gloo", rank=settings.rank)
    total = torch.ones(1)
    dist.all_reduce(total)
    if settings.rank == 0:
        print(total.item() * settings.lr)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
