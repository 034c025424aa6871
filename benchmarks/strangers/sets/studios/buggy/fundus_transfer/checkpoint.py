import os

import torch
import torch.distributed as dist

PREFIX = "module."


def save_weights(net, path):
    if dist.get_rank() == 0:
        torch.save({"weights": net.state_dict()}, path)
    dist.barrier()


def load_backbone(net, path):
    """Everything but the head, from a checkpoint written by the pretraining job."""
    blob = torch.load(path, map_location="cpu")["weights"]
    weights = {k.lstrip(PREFIX): v for k, v in blob.items() if ".head." not in k}
    net.load_state_dict(weights, strict=False)
    return net


def job_folder():
    return os.environ.get("FUNDUS_DIR") or os.path.join("/tmp", f"fundus_{os.environ['TORCHELASTIC_RUN_ID']}")
