from collections import Counter

import torch.distributed as dist


def count_words(lines):
    c = Counter()
    for line in lines:
        c.update(line.lower().split())
    return c


def shared_vocab(lines, limit):
    """Counts are taken on the local part, then merged in the first process."""
    local = count_words(lines)
    parts = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
    dist.gather_object(local, parts, dst=0)
    box = [None]
    if parts is not None:
        total = sum(parts, Counter())
        words = sorted(total, key=lambda w: (-total[w], w))[: limit - 2]
        box = [{w: i + 2 for i, w in enumerate(words)}]
    dist.broadcast_object_list(box, src=0)
    return box[0]
