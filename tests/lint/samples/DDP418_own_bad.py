from collections import defaultdict

import torch.distributed as dist


class Odd:
    """What was out of the ordinary."""

    def __init__(self):
        self.seen = defaultdict(list)

    def note(self, name, value):
        self.seen[name].append(value)

    def share(self):
        if not self.seen:  # <-- DDP418
            return []
        mine = {name: sum(values) for name, values in self.seen.items()}
        every = [None] * dist.get_world_size()
        dist.all_gather_object(every, mine)
        return every


def watch(loader, model):
    odd = Odd()
    for batch in loader:
        loss = model(batch)
        if loss.item() > 10:
            odd.note("loss", loss.item())
    return odd.share()
