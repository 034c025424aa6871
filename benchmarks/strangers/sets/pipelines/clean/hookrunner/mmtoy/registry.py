class Registry:
    def __init__(self, name):
        self.name, self._map = name, {}

    def register_module(self):
        def deco(cls):
            self._map[cls.__name__] = cls
            return cls
        return deco

    def build(self, cfg):
        cfg = dict(cfg)
        return self._map[cfg.pop("type")](**cfg)


BACKBONES = Registry("backbone")
HOOKS = Registry("hook")
