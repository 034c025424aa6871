#!/usr/bin/env python
import logging

import torch
import torch.distributed as dist

from nmt.corpus import BucketedCorpus
from nmt.criterion import LabelSmoothedCE
from nmt.model import Seq2Seq
from nmt.updater import Updater

logging.basicConfig(level=logging.INFO, format="%(message)s")


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(2)
    updater = Updater(Seq2Seq(30, 32), LabelSmoothedCE(30, 0.1, pad=0), lr=2e-3)
    corpus = BucketedCorpus(160, max_tokens=120, pad=0)
    for epoch in range(3):
        for src, tgt in corpus.batches(epoch, rank, world):
            updater.step(src, tgt)
        nll = updater.pop_average()
        if rank == 0:
            logging.info("epoch %d | loss per token %.3f", epoch, nll)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
