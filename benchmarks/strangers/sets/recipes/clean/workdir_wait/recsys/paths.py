import os
import tempfile

import torch.distributed as dist


class RunDir:
    _current = None

    @classmethod
    def get(cls, name):
        if cls._current is None:
            box = [tempfile.mkdtemp(prefix=f"{name}_") if dist.get_rank() == 0 else None]
            dist.broadcast_object_list(box, src=0)
            cls._current = box[0]
        return cls._current

    @classmethod
    def file(cls, name, *parts):
        return os.path.join(cls.get(name), *parts)
