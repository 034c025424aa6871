"""What a file is merged into is no longer what it was by default."""

import argparse

import torch.distributed as dist
import yacs.config


class Settings(yacs.config.CfgNode):
    def __str__(self):
        return "settings"


DEFAULTS = Settings()
DEFAULTS.train = Settings()
DEFAULTS.train.distributed = False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--settings")
    settings = DEFAULTS.clone()
    settings.merge_from_file(parser.parse_args().settings)
    if settings.train.distributed:
        dist.init_process_group("gloo")
    if settings.train.distributed and dist.get_rank() == 0:
        dist.barrier()  # <-- DDP401


if __name__ == "__main__":
    main()
