"""What a file is merged into is no longer what it was by default, and the same on all ranks."""

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
    settings.note(dist.get_rank())
    if settings.train.distributed:
        dist.barrier()


if __name__ == "__main__":
    main()
