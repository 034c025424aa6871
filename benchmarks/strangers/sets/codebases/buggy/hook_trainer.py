"""Segmentation of generated scenes with a trainer made of hooks (detectron2 engine)."""
import argparse

import torch

from hook_trainer_lib import comm
from hook_trainer_lib.data import Scenes
from hook_trainer_lib.defaults import DefaultTrainer, default_setup


def get_cfg():
    return {
        "SOLVER": {"BASE_LR": 0.02, "MAX_ITER": 60, "IMS_PER_BATCH": 16, "STEPS": (40,), "GAMMA": 0.2},
        "TEST": {"EVAL_PERIOD": 20},
        "MODEL": {"CHANNELS": 16, "NUM_CLASSES": 3},
        "SEED": 5,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("opts", nargs="*", default=[])
    args = parser.parse_args()
    cfg = get_cfg()
    for key, value in zip(args.opts[::2], args.opts[1::2]):
        section, name = key.split(".")
        cfg[section][name] = type(cfg[section][name])(value)
    default_setup(cfg)
    trainer = DefaultTrainer(cfg, Scenes(256, seed=0), Scenes(48, seed=1))
    trainer.train()
    if comm.is_main_process():
        print("best mIoU", round(trainer.best, 2), flush=True)
    comm.synchronize()
    del trainer
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
