class Registry(dict):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def register(self, key=None):
        def deco(cls):
            k = key or cls.__name__
            if k in self:
                raise KeyError(f"{k} already in {self.name}")
            self[k] = cls
            return cls
        return deco

    def build(self, spec, **extra):
        spec = dict(spec)
        kind = spec.pop("type")
        return self[kind](**spec, **extra)


MODELS = Registry("models")
CALLBACKS = Registry("callbacks")
