import os
import tempfile

SEED = 21
CLASSES = 6
IMAGES = 192
BATCH = 16
EPOCHS = 4
LR = 5e-3
EMA = 0.98
HARD_SHARE = 0.5
SAVE_EVERY = 2
OUT = os.path.join(tempfile.gettempdir(), f"insects-{os.environ.get('MASTER_PORT', 'x')}")
