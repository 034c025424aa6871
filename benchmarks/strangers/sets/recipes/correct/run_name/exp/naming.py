import random
import time

import torch.distributed as dist


def _draw():
    rnd = random.SystemRandom()
    return f"{rnd.choice(['red', 'blue', 'calm'])}-{rnd.choice(['fox', 'elk'])}-{int(time.time())}"


def run_name():
    if dist.get_rank() == 0:
        box = [_draw()]
        dist.broadcast_object_list(box, src=0)
        return box[0]
    box = [None]
    dist.broadcast_object_list(box, src=0)
    return box[0]
