import ast
from types import SimpleNamespace as CN


def get_cfg(opts):
    cfg = CN(
        EXPERIMENT=CN(SEED=11),
        DISTILLER=CN(TYPE="FITNET", TEACHER="wide", STUDENT="thin"),
        SOLVER=CN(BATCH_SIZE=32, EPOCHS=5, LR=0.05, MOMENTUM=0.9, WEIGHT_DECAY=1e-4, TEACHER_EPOCHS=6),
        FITNET=CN(HINT_LAYER=1, CE_WEIGHT=1.0, FEAT_WEIGHT=0.1),
    )
    for key, value in zip(opts[::2], opts[1::2]):
        *path, last = key.split(".")
        node = cfg
        for part in path:
            node = getattr(node, part)
        setattr(node, last, ast.literal_eval(value))
    return cfg
