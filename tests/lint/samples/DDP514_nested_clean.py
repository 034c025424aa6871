"""The folder of a run is named in settings that are made of nested dictionaries."""

import os
from types import SimpleNamespace

import torch.distributed as dist

SETTINGS = {"name": "tides", "out": {"root": "/runs", "plots": "plots"}}


def settings(given):
    return SimpleNamespace(
        **{key: settings(each) if isinstance(each, dict) else each for key, each in given.items()}
    )


def main():
    dist.init_process_group("gloo")
    made = settings(SETTINGS)
    os.makedirs(os.path.join(made.out.root, made.name), exist_ok=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
