import torch
import torch.distributed as dist

TEAMS = {"left": [0, 1], "right": [2, 3]}


def teams():
    found = {name: dist.new_group(ranks) for name, ranks in TEAMS.items()}
    found["heads"] = dist.new_group([0, 2])
    return found


def main():
    dist.init_process_group("gloo")
    teams()
    total = torch.ones(1)
    dist.all_reduce(total)
    if dist.get_rank() in (0, 2):
        dist.all_reduce(total, group=teams()["heads"])  # <-- DDP408
    dist.destroy_process_group()


main()
