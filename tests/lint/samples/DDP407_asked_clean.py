import json
from pathlib import Path

import torch.distributed as dist


def gather_by_files(found, name, opt):
    folder = Path(opt.folder)
    parts = folder / "parts"
    parts.mkdir(exist_ok=True)
    with open(parts / f"{opt.global_rank}.json", "w") as out:
        json.dump(found, out)
    if opt.is_distributed:
        dist.barrier()
    if opt.is_main:
        everything = []
        for part in sorted(parts.glob("*.json")):
            with open(part) as file:
                everything.extend(json.load(file))
        with open(folder / name, "w") as out:
            json.dump(everything, out)


def join_if_several(opt, sizes):
    opt.is_distributed = False
    for size in sizes:
        if size > 1:
            opt.is_distributed = True
    gather_by_files([], "all.json", opt)
