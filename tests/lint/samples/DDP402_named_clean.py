"""What is made is looked for by its name, which every rank finds or none."""

import importlib

import torch.distributed as dist
import yaml
from torch.nn.parallel import DistributedDataParallel


class Settings(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(name) from error


def inside(module, name):
    found = module
    for part in name.split("."):
        found = getattr(found, part)
    return found


def named(name):
    parts = name.split(".")
    for at in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:at]))
            return inside(module, ".".join(parts[at:]))
        except Exception:
            pass
    raise ImportError(name)


def made(kind, **options):
    return named(kind)(**options)


def main(path):
    dist.init_process_group("gloo")
    settings = Settings(yaml.safe_load(open(path)))
    model = DistributedDataParallel(made(**settings.model))
    for part in made(**settings.parts):
        if part is not None:
            dist.broadcast(part, src=0)
    print(model)
