import os
import pickle
import random
import shutil

import numpy as np
import torch
import torch.distributed as dist


def init_dist_pytorch(backend="gloo"):
    dist.init_process_group(backend=backend)
    return get_dist_info()


def get_dist_info():
    return (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)


def set_random_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def shared_string(text):
    box = [text]
    dist.broadcast_object_list(box)
    return box[0]


def merge_results_dist(result_part, size, tmpdir):
    rank, world_size = get_dist_info()
    os.makedirs(tmpdir, exist_ok=True)
    dist.barrier()
    with open(os.path.join(tmpdir, f"result_part_{rank}.pkl"), "wb") as f:
        pickle.dump(result_part, f)
    if rank != 0:
        return None
    part_list = []
    for i in range(world_size):
        with open(os.path.join(tmpdir, f"result_part_{i}.pkl"), "rb") as f:
            part_list.append(pickle.load(f))
    ordered_results = []
    for res in zip(*part_list):
        ordered_results.extend(list(res))
    shutil.rmtree(tmpdir)
    return ordered_results[:size]
