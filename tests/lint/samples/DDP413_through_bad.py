import json
from pathlib import Path

import torch
import torch.distributed as dist


def scores(of, parts):
    for part in parts[of]:
        score = torch.tensor([float(part)])
        dist.all_reduce(score)
        yield score.item()


def main():
    dist.init_process_group("gloo")
    parts = json.loads(Path("parts.json").read_text())
    told = {}
    for of in {*parts, "b"}:  # <-- DDP413
        told[of] = sum(scores(of, parts))
    print(told, max(scores("a", parts)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
