import argparse

import torch
import torch.distributed as dist
from accelerate import Accelerator


def main(path):
    accelerator = Accelerator()
    model = torch.nn.Linear(4, 4)
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters()))
    for _ in range(100):
        optimizer.zero_grad()
        accelerator.backward(model(torch.randn(8, 4, device=accelerator.device)).sum())
        optimizer.step()
    state = model.state_dict()  # <-- DDP508
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
