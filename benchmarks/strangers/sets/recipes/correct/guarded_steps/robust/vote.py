import functools

import torch
import torch.distributed as dist


def any_rank(flag: bool) -> bool:
    t = torch.tensor(float(flag))
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return t.item() > 0


def skip_together(*errors):
    """Turn an error of one worker into a skipped step of all."""
    def deco(fn):
        @functools.wraps(fn)
        def wrapper(self, *args):
            result, failed = None, False
            try:
                result = fn(self, *args)
            except errors:
                failed = True
            if any_rank(failed):
                self.skipped += 1
                return None
            return result
        return wrapper
    return deco
