"""CTC recogniser on synthetic speech with batches by frame budget, so that ranks have unequal counts (wenet layout)."""
import argparse
import logging

import torch
import torch.distributed as dist
import yaml

from ctc_join_lib.dataset import Dataset
from ctc_join_lib.executor import Executor
from ctc_join_lib.model import init_model

CONF = """
encoder_conf: {output_size: 48, num_layers: 1}
dataset_conf: {utterances: 180, max_frames_in_batch: 400, input_dim: 12}
optim_conf: {lr: 0.004}
grad_clip: 5.0
accum_grad: 1
log_interval: 10
max_epoch: 3
"""


def get_args():
    parser = argparse.ArgumentParser(description="training your network")
    parser.add_argument("--ddp.dist_backend", dest="dist_backend", default="gloo")
    parser.add_argument("--seed", type=int, default=777)
    return parser.parse_args()


def main():
    args, configs = get_args(), yaml.safe_load(CONF)
    dist.init_process_group(args.dist_backend)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING, format="%(message)s")
    torch.manual_seed(args.seed)
    configs["vocab_size"] = 8
    train_set = Dataset(configs["dataset_conf"], configs["vocab_size"], rank, world_size)
    loader = torch.utils.data.DataLoader(train_set, batch_size=None)
    model = torch.nn.parallel.DistributedDataParallel(init_model(configs))
    optimizer = torch.optim.Adam(model.parameters(), **configs["optim_conf"])
    executor = Executor()
    for epoch in range(configs["max_epoch"]):
        train_set.set_epoch(epoch)
        dist.barrier()
        loss = executor.train(model, optimizer, loader, configs)
        logging.info("Epoch %d TRAIN info loss %.4f steps %d", epoch, loss, executor.step)
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
