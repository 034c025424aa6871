import torch.distributed as dist


class Hosts:
    def __init__(self, per_host):
        self.rank, self.per_host = dist.get_rank(), per_host
        self.host = self.rank // per_host
        self.groups = {}

    def members(self, host):
        return list(range(host * self.per_host, (host + 1) * self.per_host))

    def build(self):
        hosts = range(dist.get_world_size() // self.per_host)
        for host in sorted(hosts, key=lambda each: each != self.host):  # <-- DDP413
            self.groups[host] = dist.new_group(self.members(host))
        return self.groups[self.host]


def spread(parts):
    mine = dist.get_rank()
    order = list(parts)
    order.sort(key=lambda each: each[0] == mine, reverse=True)
    for owner, part in order:  # <-- DDP413
        dist.broadcast(part, src=owner)


def main(tables):
    dist.init_process_group("gloo")
    group = Hosts(2).build()
    parts = [(owner, table) for owner, table in enumerate(tables)]
    spread(parts)
    dist.barrier(group)


if __name__ == "__main__":
    main([])
