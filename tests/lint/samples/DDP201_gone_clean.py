import torch
import torch.distributed as dist


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
        total = torch.full((1,), float(dist.get_rank()))
        job.last.append(lambda: told(total))
        dist.barrier()


if __name__ == "__main__":
    main()
