import argparse

import torch
import torch.distributed as dist
from accelerate import Accelerator
from torch.distributed.fsdp import FullStateDictConfig, StateDictType
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def main(path):
    accelerator = Accelerator()
    model = torch.nn.Linear(4, 4)
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters()))
    for _ in range(100):
        optimizer.zero_grad()
        accelerator.backward(model(torch.randn(8, 4, device=accelerator.device)).sum())
        optimizer.step()
    whole = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, whole):
        state = model.state_dict()
    if accelerator.is_main_process:
        torch.save(state, path)
    dist.destroy_process_group()


def predict(path):
    model = torch.nn.Linear(4, 4)
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return model.eval()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    main(parser.parse_args().path)
