import torch.distributed as dist

TEAMS = {"a": [0, 1], "b": [2, 3]}
LEADS = (0, 2)


def my_team():
    for name, members in TEAMS.items():
        if dist.get_rank() in members:
            return name
    raise RuntimeError("in no team")


def main():
    dist.init_process_group("gloo")
    dist.new_group(list(LEADS))
    groups = {name: dist.new_group(members) for name, members in TEAMS.items()}
    return groups[my_team()]


if __name__ == "__main__":
    main()
