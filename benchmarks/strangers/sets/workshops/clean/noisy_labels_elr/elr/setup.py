import torch.distributed as dist


class Dist:
    def __enter__(self):
        dist.init_process_group("gloo")
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        return self

    def __exit__(self, *exc):
        dist.destroy_process_group()
