import json
from pathlib import Path

import torch
import torch.distributed as dist


def rows(of, parts):
    for part in parts[of]:
        yield torch.tensor([float(part)])


def main():
    dist.init_process_group("gloo")
    parts = json.loads(Path("parts.json").read_text())
    longest = {}
    for of in {*parts, "b"}:
        longest[of] = max(row.item() for row in rows(of, parts))
        for row in rows(of, parts):
            longest[of] = max(longest[of], row.item())
    for row in rows("a", parts):
        dist.all_reduce(row)
    print(longest)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
