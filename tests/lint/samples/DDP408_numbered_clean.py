import torch.distributed as dist


class Links:
    def __init__(self, rank, world):
        self.rank = rank
        self.world = world
        self.pairs = {}
        for one in range(world):
            other = self.before(one)
            if self.is_giver(one) and not self.is_giver(other):
                self.pairs[one] = dist.new_group([one, other])

    def before(self, one):
        for _ in range(1):
            one -= 1
            if one < 0:
                one = self.world - 1
        return one

    def is_giver(self, rank=None):
        rank = self.rank if rank is None else rank
        return rank % 2 == 0


def main():
    dist.init_process_group("nccl")
    links = Links(dist.get_rank(), dist.get_world_size())
    print(links.is_giver())


if __name__ == "__main__":
    main()
