"""What was gathered is kept by what it was gathered from."""

import torch
import torch.distributed as dist


class Gathered:
    def __init__(self):
        self.kept = {}

    def of(self, rows):
        key = id(rows)
        if key not in self.kept:
            parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, rows)
            self.kept[key] = torch.cat(parts)
        return self.kept[key]


def main(rows):
    dist.init_process_group("gloo")
    gathered = Gathered()
    print(gathered.of(rows), gathered.of(rows))


main(torch.ones(2))
