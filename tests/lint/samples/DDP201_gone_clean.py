import dataclasses

import torch
import torch.distributed as dist


@dataclasses.dataclass
class Plan:
    rows: int = 64
    ranks: int = dataclasses.field(default_factory=dist.get_world_size)


class Job:
    def __enter__(self):
        dist.init_process_group("gloo")
        self.last = []
        return self

    def __exit__(self, *_):
        for each in self.last:
            each()
        dist.destroy_process_group()


def told(total):
    dist.all_reduce(total)
    print(total)


def main():
    with Job() as job:
        plan = Plan()
        total = torch.full((1,), float(dist.get_rank() + plan.rows))
        job.last.append(lambda: told(total))
        dist.barrier()


if __name__ == "__main__":
    main()
