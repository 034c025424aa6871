import torch
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
        for host in sorted(hosts, key=lambda each: -each):
            self.groups[host] = dist.new_group(self.members(host))
        return self.groups[self.host]


def spread(parts):
    mine = dist.get_rank()
    for owner, part in sorted(parts, key=lambda each: each[0]):
        dist.broadcast(part, src=owner)
    for owner, part in sorted(parts, key=lambda each: each[0] == mine):
        print(owner, part.sum())


def exchange(part):
    rank, world = dist.get_rank(), dist.get_world_size()
    got, pending = {}, []
    for peer in sorted(range(world), key=lambda each: (each - rank) % world):
        if peer != rank:
            got[peer] = torch.empty_like(part)
            pending += [dist.isend(part, dst=peer), dist.irecv(got[peer], src=peer)]
    for work in pending:
        work.wait()
    return got


def main(tables):
    dist.init_process_group("gloo")
    group = Hosts(2).build()
    parts = [(owner, table) for owner, table in enumerate(tables)]
    spread(parts)
    exchange(parts[0][1])
    dist.barrier(group)


if __name__ == "__main__":
    main([])
