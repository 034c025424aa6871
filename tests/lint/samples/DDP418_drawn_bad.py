import collections

import torch
import torch.distributed as dist


class Watch:
    def __init__(self):
        self.waiting = collections.defaultdict(list)

    def note(self, name, value):
        self.waiting[name].append(value)

    def tell(self):
        means = {name: sum(values) / len(values) for name, values in self.waiting.items()}
        self.waiting.clear()
        return self.together(means)

    def together(self, means):
        if not means:  # <-- DDP418
            return {}
        all_means = [None] * dist.get_world_size()
        dist.all_gather_object(all_means, means)
        return {name: max(each.get(name, 0) for each in all_means) for name in means}


def main():
    dist.init_process_group("gloo")
    draws = torch.Generator().manual_seed(dist.get_rank())
    watch = Watch()
    for step in range(1, 21):
        shares = torch.rand(4, generator=draws).tolist()
        for number, share in enumerate(shares):
            if share > 0.9:
                watch.note(f"over/{number}", share)
        if step % 5 == 0:
            print(watch.tell())


main()
