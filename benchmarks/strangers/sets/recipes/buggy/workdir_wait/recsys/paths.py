import os
import tempfile

import torch.distributed as dist


class RunDir:
    _current = None

    @classmethod
    def get(cls, name):
        if cls._current is None:
            cls._current = tempfile.mkdtemp(prefix=f"{name}_")
        return cls._current

    @classmethod
    def file(cls, name, *parts):
        return os.path.join(cls.get(name), *parts)
