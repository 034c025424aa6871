import json
from pathlib import Path

import torch.distributed as dist


def table(folder):
    place = Path(folder) / "table.json"
    if not place.exists():  # <-- DDP402
        if dist.get_rank() == 0:
            place.write_text(json.dumps([1, 2]))
        dist.barrier()
    return json.loads(place.read_text())


dist.init_process_group("gloo")
table("data")
dist.destroy_process_group()
