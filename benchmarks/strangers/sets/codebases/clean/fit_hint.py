"""FitNet hints from a wide teacher to a thin student, with distillers from a registry (mdistiller layout)."""
import argparse

import torch
import torch.distributed as dist

from fit_hint_lib.cfg import get_cfg
from fit_hint_lib.data import get_dataloaders
from fit_hint_lib.distillers import distiller_dict
from fit_hint_lib.engine import BaseTrainer, pretrain_teacher
from fit_hint_lib.models import model_dict


def main(args):
    cfg = get_cfg(args.opts)
    dist.init_process_group("gloo")
    torch.manual_seed(cfg.EXPERIMENT.SEED + dist.get_rank())
    train_loader, val_loader = get_dataloaders(cfg)
    teacher, student = model_dict[cfg.DISTILLER.TEACHER](), model_dict[cfg.DISTILLER.STUDENT]()
    pretrain_teacher(teacher, train_loader, cfg)
    distiller = distiller_dict[cfg.DISTILLER.TYPE](student, teacher, cfg)
    distiller.distribute()
    trainer = BaseTrainer(distiller, train_loader, val_loader, cfg)
    trainer.train()
    dist.barrier()
    del trainer, distiller
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser("training for knowledge distillation.")
    parser.add_argument("opts", nargs="*", help="KEY VALUE pairs that override the config")
    main(parser.parse_args())
