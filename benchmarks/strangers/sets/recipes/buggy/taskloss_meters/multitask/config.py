from types import SimpleNamespace

DEFAULT = dict(tasks=("depth", "normal", "edges"), dim=12, width=24, iters=20, lr=5e-3, batch=5, log_every=5)


def load_config(**overrides):
    return SimpleNamespace(**{**DEFAULT, **overrides})
