_TABLE = {}


def register(kind, name):
    def deco(cls):
        _TABLE[kind, name] = cls
        return cls
    return deco


def create(kind, name, **kwargs):
    return _TABLE[kind, name](**kwargs)
