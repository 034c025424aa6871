import logging
import os
import sys
from datetime import datetime


def setup_run(base_dir, job_name, add_datetime_prefix=True):
    if add_datetime_prefix:
        job_name = f"{datetime.now():%y_%m_%d-%H_%M}-{job_name}"
    out_dir_run = os.path.join(base_dir, job_name)
    os.makedirs(out_dir_run, exist_ok=False)
    for sub in ("checkpoint", "tensorboard", "eval"):
        os.makedirs(os.path.join(out_dir_run, sub), exist_ok=True)
    return out_dir_run


def config_logging(out_dir, rank):
    handlers = [logging.StreamHandler(sys.stdout)]
    if rank == 0:
        handlers.append(logging.FileHandler(os.path.join(out_dir, "logging.log")))
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING, handlers=handlers,
                        format="%(levelname)s %(message)s")
