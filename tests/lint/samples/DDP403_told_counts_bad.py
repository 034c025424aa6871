import torch
import torch.distributed as dist


class Courier:
    """Who trains says what leaves, and takes what comes for as many."""

    @staticmethod
    def fetch(rows, leaving):
        arriving = leaving.roll(1)
        newcomers = rows.new_empty(int(arriving.sum()), rows.shape[1])
        dist.all_to_all_single(  # <-- DDP403
            newcomers,
            rows,
            output_split_sizes=arriving.tolist(),
            input_split_sizes=leaving.tolist(),
        )
        return newcomers
