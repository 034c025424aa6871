import tempfile

import torch.distributed as dist

from config import Cfg
from trainer import Trainer


def main():
    dist.init_process_group("gloo")
    box = [tempfile.mkdtemp(prefix="zero_seg_") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    cfg = Cfg(work_dir=box[0])
    Trainer(cfg).fit()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
