"""Weights that are sharded: the whole of them is asked for at the end."""

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def make():
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in net:
        fully_shard(layer, mesh=mesh)
    return fully_shard(net, mesh=mesh)


def write(net, path):
    whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
    if dist.get_rank() == 0:
        state = get_model_state_dict(net, options=whole)  # <-- DDP401
        torch.save(state, path)


def write_part(net, optimizer, rank):
    if rank == 0:  # each rank's own part: nobody is asked for anything
        print(len(get_model_state_dict(net)), len(get_optimizer_state_dict(net, optimizer)))


def begin(net, path):
    if dist.get_rank() == 0:
        state = torch.load(path, map_location="cpu")
        spread = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        set_model_state_dict(net, state, options=spread)  # <-- DDP401


def main(path):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = make()
    begin(net, path)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    for _ in range(8):
        loss = net(torch.randn(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    write_part(net, optimizer, dist.get_rank())
    write(net, path)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main("weights.pt")
